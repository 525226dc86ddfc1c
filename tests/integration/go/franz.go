package main

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func franz(bootstrap []string, topic string) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	check(err)
	defer client.Close()
	admin := kadm.NewClient(client)
	created, err := admin.CreateTopic(ctx, 3, 2, map[string]*string{"retention.ms": kadm.StringPtr("3600000")}, topic)
	check(err)
	see("created", created.Err == nil)
	settle()
	metadata, err := admin.Metadata(ctx, topic)
	check(err)
	var nodes []string
	for _, broker := range metadata.Brokers {
		nodes = append(nodes, fmt.Sprintf("%d@%s:%d", broker.NodeID, broker.Host, broker.Port))
	}
	see("nodes", joined(nodes))
	see("partitions", len(metadata.Topics[topic].Partitions))

	for number := range records {
		client.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(number % 3), Value: []byte(value(number))}, nil)
	}
	check(client.Flush(ctx))
	ends, err := admin.ListEndOffsets(ctx, topic)
	check(err)
	sum := int64(0)
	ends.Each(func(end kadm.ListedOffset) { sum += end.Offset })
	see("end offsets", sum)

	see("consumed", franzConsume(ctx, bootstrap, topic, records))
	settle()
	groups, err := admin.DescribeGroups(ctx, topic)
	check(err)
	see("group", groups[topic].State)
	commits, err := admin.FetchOffsets(ctx, topic)
	check(err)
	sum = 0
	commits.Each(func(commit kadm.OffsetResponse) { sum += commit.At })
	see("committed", sum)

	transactional, err := kgo.NewClient(kgo.SeedBrokers(bootstrap...), kgo.TransactionalID(topic),
		kgo.DefaultProduceTopic(topic))
	check(err)
	for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		check(transactional.BeginTransaction())
		for number := range 10 {
			record := kgo.StringRecord(fmt.Sprintf("transaction-%t-%d", bool(commit), number))
			check(transactional.ProduceSync(ctx, record).FirstErr())
		}
		check(transactional.EndTransaction(ctx, commit))
	}
	transactional.Close()
	see("committed transactions", franzConsume(ctx, bootstrap, topic, records+10, kgo.ConsumerGroup(topic+"-again"),
		kgo.FetchIsolationLevel(kgo.ReadCommitted())))

	_, err = admin.AlterTopicConfigs(ctx,
		[]kadm.AlterConfig{{Op: kadm.SetConfig, Name: "retention.ms", Value: kadm.StringPtr("7200000")}}, topic)
	check(err)
	settle()
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	check(err)
	for _, config := range configs[0].Configs {
		if config.Key == "retention.ms" {
			see("altered", *config.Value)
		}
	}
	_, err = admin.DeleteTopic(ctx, topic)
	check(err)
	settle()
	left, err := admin.ListTopics(ctx)
	check(err)
	see("still listed", left.Has(topic))
}

func franzConsume(ctx context.Context, bootstrap []string, topic string, count int, more ...kgo.Opt) string {
	options := append([]kgo.Opt{kgo.SeedBrokers(bootstrap...), kgo.ConsumeTopics(topic), kgo.ConsumerGroup(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit()}, more...)
	client, err := kgo.NewClient(options...)
	check(err)
	var values []string
	for len(values) < count {
		fetches := client.PollFetches(ctx)
		check(fetches.Err())
		fetches.EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	check(client.CommitUncommittedOffsets(ctx))
	check(client.LeaveGroupContext(ctx))
	client.Close()
	return summary(values)
}
