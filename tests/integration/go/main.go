// One script for two Go clients: `clients franz-go|sarama BOOTSTRAP TOPIC`.
//
// Prints `NAME = VALUE` for everything that the client has seen, and `settle` where a write shall be known everywhere
// before the script goes on: it waits for a line then.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"
)

const (
	records = 3000
	timeout = 60 * time.Second
)

var orders = bufio.NewReader(os.Stdin)

func see(name string, value any) {
	fmt.Printf("%s = %v\n", name, value)
}

func settle() {
	fmt.Println("settle")
	if _, err := orders.ReadString('\n'); err != nil {
		os.Exit(1)
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func value(number int) string {
	return fmt.Sprintf("value-%d", number)
}

// summary says how many values there are, how many different ones, and the first and the last of them.
func summary(values []string) string {
	different := map[string]bool{}
	for _, each := range values {
		different[each] = true
	}
	sorted := make([]string, 0, len(different))
	for each := range different {
		sorted = append(sorted, each)
	}
	sort.Strings(sorted)
	if len(sorted) == 0 {
		return "none"
	}
	return fmt.Sprintf("%d, %d different, %s to %s", len(values), len(sorted), sorted[0], sorted[len(sorted)-1])
}

func joined(parts []string) string {
	sort.Strings(parts)
	return strings.Join(parts, " ")
}

func main() {
	client, bootstrap, topic := os.Args[1], os.Args[2], os.Args[3]
	switch client {
	case "franz-go":
		franz(strings.Split(bootstrap, ","), topic)
	case "sarama":
		shop(strings.Split(bootstrap, ","), topic)
	default:
		check(fmt.Errorf("no client %q", client))
	}
	see("done", "yes")
}
