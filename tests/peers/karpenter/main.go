// Command karpenter asks Karpenter's own code, unchanged, what it would do about a problem, and
// prints the answer as JSON.
//
//	karpenter decide PROBLEM --repetitions 5  for all pods at once, each time with other UIDs
//	karpenter stream PROBLEM --batch 30       for 30 pods at a time, as they arrive
//	karpenter pools PROBLEM                   for each workload alone, with NodePools as published
//	karpenter consolidate PROBLEM             about running nodes, until it finds nothing to change
//	karpenter weeks                           as time passes in a world that stdin and stdout lead to
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"syscall"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/karpenter/pkg/operator/logging"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == "weeks" {
		weeks()
	}
	log.SetLogger(logging.NopLogger)
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: karpenter weeks, or karpenter decide|stream|pools|consolidate PROBLEM [flags]"))
	}
	flags := flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	repetitions := flags.Int("repetitions", 1, "decide so often, each time with other UIDs")
	batch := flags.Int("batch", 1, "pods that arrive at a time")
	seed := flags.Int64("seed", 1, "draws the UIDs of the pods")
	check(flags.Parse(os.Args[3:]))
	var answer any
	switch os.Args[1] {
	case "decide":
		answer = decideOften(readProblem[Problem](os.Args[2]), *seed, *repetitions)
	case "stream":
		answer = stream(readProblem[Problem](os.Args[2]), *seed, *batch)
	case "pools":
		answer = decidePools(readProblem[PoolsProblem](os.Args[2]), *seed)
	case "consolidate":
		answer = consolidate(readProblem[Problem](os.Args[2]), *seed)
	default:
		fail(fmt.Errorf("%s: use decide, stream, pools or consolidate", os.Args[1]))
	}
	check(json.NewEncoder(os.Stdout).Encode(answer))
}

// cpuTime returns the processor time that all threads have used.
func cpuTime() time.Duration {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// peakMebibytes returns the most memory that the process has held.
func peakMebibytes() float64 {
	var used syscall.Rusage
	check(syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return float64(used.Maxrss) / 1024
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func check(err error) {
	if err != nil {
		debug.PrintStack()
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "karpenter:", err)
	os.Exit(2)
}
