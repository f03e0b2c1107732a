// Asks for the time, for half a second.
package main

import "time"

//go:noinline
func untilLater(begin time.Time) (count int) {
	for time.Since(begin) < 500*time.Millisecond {
		count++
	}
	return count
}

func main() {
	println(untilLater(time.Now()))
}
