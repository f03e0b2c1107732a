// Goroutines that allocate, collect garbage, sort, encode and grow their stacks.
package main

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
)

type item struct {
	Name  string
	Value int
	Tags  []string
}

func work(seed int) int {
	var items, back []item
	for i := 0; i < 2000; i++ {
		items = append(items, item{fmt.Sprintf("n%d", i*seed%977), i, []string{"a", "b"}})
	}
	encoded, _ := json.Marshal(items)
	json.Unmarshal(encoded, &back)
	sort.Slice(back, func(i, j int) bool { return back[i].Name < back[j].Name })
	sums := map[string]int{}
	for _, b := range back {
		sums[strings.ToUpper(b.Name)] += b.Value
	}
	return len(sums)
}

func deep(depth int) int {
	var here [64]int
	here[depth%64] = depth
	if depth == 0 {
		return work(3)
	}
	return deep(depth-1) + here[depth%64]
}

func main() {
	results := make(chan int, 4)
	for worker := 0; worker < 4; worker++ {
		go func(seed int) {
			for i := 0; i < 40; i++ {
				results <- work(seed + i)
				go func() { results <- deep(60) }()
			}
		}(worker)
	}
	sum := 0
	for i := 0; i < 320; i++ {
		sum += <-results
	}
	fmt.Println(sum)
}
