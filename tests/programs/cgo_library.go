// Go that calls C, which only calls the C library: in loops, so that samples hit the way there.
package main

/*
#include <stdlib.h>
#include <string.h>
static char work(int bytes) {
	char *place = malloc(bytes);
	memset(place, 1, bytes);
	char last = place[bytes - 1];
	free(place);
	return last;
}
*/
import "C"
import "fmt"

//go:noinline
func callC() int {
	return int(C.work(100))
}

func main() {
	sum := 0
	for i := 0; i < 4000000; i++ {
		sum += callC()
	}
	fmt.Println(sum)
}
