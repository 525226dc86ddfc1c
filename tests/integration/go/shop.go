package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/IBM/sarama"
)

// reader is a member of a group that ends when it has seen enough.
type reader struct {
	mutex  sync.Mutex
	values []string
	count  int
	enough context.CancelFunc
}

func (r *reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (r *reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (r *reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			r.mutex.Lock()
			r.values = append(r.values, string(message.Value))
			session.MarkMessage(message, "")
			if len(r.values) >= r.count {
				session.Commit()
				r.enough()
			}
			r.mutex.Unlock()
		case <-session.Context().Done():
			return nil
		}
	}
}

func shop(bootstrap []string, topic string) {
	config := sarama.NewConfig()
	config.Version = sarama.MaxVersion
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Producer.Idempotent = true
	config.Producer.RequiredAcks = sarama.WaitForAll
	config.Net.MaxOpenRequests = 1
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.IsolationLevel = sarama.ReadCommitted
	client, err := sarama.NewClient(bootstrap, config)
	check(err)
	admin, err := sarama.NewClusterAdminFromClient(client)
	check(err)
	retention := "3600000"
	detail := &sarama.TopicDetail{NumPartitions: 3, ReplicationFactor: 2,
		ConfigEntries: map[string]*string{"retention.ms": &retention}}
	check(admin.CreateTopic(topic, detail, false))
	settle()
	brokers, _, err := admin.DescribeCluster()
	check(err)
	var nodes []string
	for _, broker := range brokers {
		nodes = append(nodes, fmt.Sprintf("%d@%s", broker.ID(), broker.Addr()))
	}
	see("nodes", joined(nodes))
	topics, err := admin.DescribeTopics([]string{topic})
	check(err)
	see("partitions", len(topics[0].Partitions))

	producer, err := sarama.NewSyncProducer(bootstrap, config)
	check(err)
	var batch []*sarama.ProducerMessage
	for number := range records {
		batch = append(batch, &sarama.ProducerMessage{Topic: topic, Partition: int32(number % 3),
			Value: sarama.StringEncoder(value(number))})
	}
	check(producer.SendMessages(batch))
	check(producer.Close())
	sum := int64(0)
	for partition := range int32(3) {
		end, err := client.GetOffset(topic, partition, sarama.OffsetNewest)
		check(err)
		sum += end
	}
	see("end offsets", sum)
	see("consumed", shopConsume(bootstrap, topic, topic, config, records))
	settle()
	groups, err := admin.DescribeConsumerGroups([]string{topic})
	check(err)
	see("group", groups[0].State)

	inTransactions := *config
	inTransactions.Producer.Transaction.ID = topic
	transactional, err := sarama.NewSyncProducer(bootstrap, &inTransactions)
	check(err)
	for _, commit := range []bool{true, false} {
		check(transactional.BeginTxn())
		for number := range 10 {
			_, _, err := transactional.SendMessage(&sarama.ProducerMessage{Topic: topic,
				Value: sarama.StringEncoder(fmt.Sprintf("transaction-%t-%d", commit, number))})
			check(err)
		}
		if commit {
			check(transactional.CommitTxn())
		} else {
			check(transactional.AbortTxn())
		}
	}
	check(transactional.Close())
	see("committed transactions", shopConsume(bootstrap, topic, topic+"-again", config, records+10))

	retention = "7200000"
	check(admin.AlterConfig(sarama.TopicResource, topic, map[string]*string{"retention.ms": &retention}, false))
	settle()
	entries, err := admin.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: topic,
		ConfigNames: []string{"retention.ms"}})
	check(err)
	see("altered", entries[0].Value)
	check(admin.DeleteTopic(topic))
	settle()
	listed, err := admin.ListTopics()
	check(err)
	_, found := listed[topic]
	see("still listed", found)
	check(admin.Close())
}

func shopConsume(bootstrap []string, topic string, name string, config *sarama.Config, count int) string {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	group, err := sarama.NewConsumerGroup(bootstrap, name, config)
	check(err)
	member := &reader{count: count, enough: cancel}
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{topic}, member); err != nil && !strings.Contains(err.Error(), "closed") {
			check(err)
		}
	}
	check(group.Close())
	return summary(member.values)
}
