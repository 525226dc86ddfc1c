// Speaks to a Kafka with franz-go, one call after the other. Before each it prints `call NAME` and waits for a line.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const timeout = 30 * time.Second

var orders = bufio.NewReader(os.Stdin)

func call(name string, do func(context.Context) error) {
	fmt.Printf("call %s\n", name)
	if _, err := orders.ReadString('\n'); err != nil {
		os.Exit(1)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := do(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, dep := range info.Deps {
		if dep.Path == "github.com/twmb/franz-go" {
			return dep.Version
		}
	}
	return "?"
}

func main() {
	bootstrap, topic := os.Args[1], os.Args[2]
	fmt.Printf("client franz-go %s\n", version())
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.ConsumeTopics(topic), kgo.ConsumerGroup(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.ClientID("capture"))
	if err != nil {
		panic(err)
	}
	admin := kadm.NewClient(client)
	call("ListTopics", func(ctx context.Context) error { _, err := admin.ListTopics(ctx); return err })
	call("CreateTopic", func(ctx context.Context) error {
		_, err := admin.CreateTopic(ctx, 2, 1, map[string]*string{"retention.ms": kadm.StringPtr("3600000")}, topic)
		return err
	})
	call("AlterTopicConfigs", func(ctx context.Context) error {
		set := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("7200000")}}
		_, err := admin.AlterTopicConfigs(ctx, set, topic)
		return err
	})
	call("DescribeTopicConfigs", func(ctx context.Context) error {
		_, err := admin.DescribeTopicConfigs(ctx, topic)
		return err
	})
	call("UpdatePartitions", func(ctx context.Context) error {
		_, err := admin.UpdatePartitions(ctx, 3, topic)
		return err
	})
	acl := kadm.NewACLs().Topics(topic).Allow("User:carol").AllowHosts().Operations(kadm.OpRead).
		ResourcePatternType(kadm.ACLPatternLiteral)
	call("CreateACLs", func(ctx context.Context) error { _, err := admin.CreateACLs(ctx, acl); return err })
	call("DescribeACLs", func(ctx context.Context) error { _, err := admin.DescribeACLs(ctx, acl); return err })
	call("DeleteACLs", func(ctx context.Context) error { _, err := admin.DeleteACLs(ctx, acl); return err })
	call("DescribeClientQuotas", func(ctx context.Context) error {
		_, err := admin.DescribeClientQuotas(ctx, false, nil)
		return err
	})
	call("DescribeUserSCRAMs", func(ctx context.Context) error { _, err := admin.DescribeUserSCRAMs(ctx); return err })
	call("DescribeAllLogDirs", func(ctx context.Context) error {
		_, err := admin.DescribeAllLogDirs(ctx, nil)
		return err
	})
	call("Produce", func(ctx context.Context) error {
		record := &kgo.Record{Topic: topic, Key: []byte("k"), Value: []byte("v"),
			Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}}}
		return client.ProduceSync(ctx, record).FirstErr()
	})
	call("Consume", func(ctx context.Context) error {
		fetches := client.PollFetches(ctx)
		return fetches.Err()
	})
	call("ListGroups", func(ctx context.Context) error { _, err := admin.ListGroups(ctx); return err })
	call("DeleteTopic", func(ctx context.Context) error { _, err := admin.DeleteTopic(ctx, topic); return err })
	client.Close()
}
