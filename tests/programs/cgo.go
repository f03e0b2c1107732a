// Go that calls C: the C code works, below some Go frames.
package main

/*
static double work(int rounds) {
	volatile double sum = 0;
	for (int i = 0; i < rounds; i++)
		sum += i;
	return sum;
}
*/
import "C"
import "fmt"

//go:noinline
func callC(depth int) float64 {
	if depth == 0 {
		return float64(C.work(2000000))
	}
	return callC(depth-1) + 1
}

func main() {
	sum := 0.0
	for i := 0; i < 50; i++ {
		sum += callC(10)
	}
	fmt.Println(sum)
}
