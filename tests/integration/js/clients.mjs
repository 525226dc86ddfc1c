// The script of `tests/integration/go` for kafkajs: `node clients.mjs kafkajs BOOTSTRAP TOPIC`.
import readline from "node:readline";
import kafkajs from "kafkajs";

const { ConfigResourceTypes, Kafka, Partitioners, logLevel } = kafkajs;

const RECORDS = 3000;
const [, bootstrap, topic] = process.argv.slice(2);
const orders = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const see = (name, value) => console.log(`${name} = ${value}`);

async function settle() {
  console.log("settle");
  await orders.next();
}

function summary(values) {
  const different = [...new Set(values)].sort();
  return `${values.length}, ${different.length} different, ${different[0]} to ${different.at(-1)}`;
}

const kafka = new Kafka({ clientId: "kafkajs", brokers: bootstrap.split(","), logLevel: logLevel.ERROR });
const admin = kafka.admin();

async function consume(groupId, count) {
  const consumer = kafka.consumer({ groupId, readUncommitted: false });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const values = [];
  await new Promise((resolve, reject) => {
    consumer.run({
      eachBatch: async ({ batch, resolveOffset, commitOffsetsIfNecessary }) => {
        for (const message of batch.messages) {
          values.push(message.value.toString());
          resolveOffset(message.offset);
        }
        await commitOffsetsIfNecessary();
        if (values.length >= count) resolve();
      },
    }).catch(reject);
  });
  await consumer.disconnect();
  return summary(values);
}

await admin.connect();
const created = await admin.createTopics({
  topics: [{
    topic, numPartitions: 3, replicationFactor: 2, configEntries: [{ name: "retention.ms", value: "3600000" }],
  }],
  waitForLeaders: false,
});
see("created", created);
await settle();
const { brokers } = await admin.describeCluster();
see("nodes", brokers.map((broker) => `${broker.nodeId}@${broker.host}:${broker.port}`).sort().join(" "));
const described = await admin.fetchTopicMetadata({ topics: [topic] });
see("partitions", described.topics[0].partitions.length);

const producer = kafka.producer({ idempotent: true, createPartitioner: Partitioners.DefaultPartitioner });
await producer.connect();
const messages = Array.from({ length: RECORDS }, (_, number) => ({ partition: number % 3, value: `value-${number}` }));
await producer.send({ topic, messages });
await producer.disconnect();
const ends = await admin.fetchTopicOffsets(topic);
see("end offsets", ends.reduce((sum, end) => sum + Number(end.offset), 0));
see("consumed", await consume(topic, RECORDS));
await settle();
const groups = await admin.describeGroups([topic]);
see("group", groups.groups[0].state);

const transactional = kafka.producer({
  transactionalId: topic, maxInFlightRequests: 1, idempotent: true, createPartitioner: Partitioners.DefaultPartitioner,
});
await transactional.connect();
for (const commit of [true, false]) {
  const transaction = await transactional.transaction();
  for (let number = 0; number < 10; number += 1) {
    await transaction.send({ topic, messages: [{ value: `transaction-${commit}-${number}` }] });
  }
  await (commit ? transaction.commit() : transaction.abort());
}
await transactional.disconnect();
see("committed transactions", await consume(`${topic}-again`, RECORDS + 10));

const resource = { type: ConfigResourceTypes.TOPIC, name: topic };
await admin.alterConfigs({
  validateOnly: false, resources: [{ ...resource, configEntries: [{ name: "retention.ms", value: "7200000" }] }],
});
await settle();
const { resources } = await admin.describeConfigs({
  includeSynonyms: false, resources: [{ ...resource, configNames: ["retention.ms"] }],
});
see("altered", resources[0].configEntries[0].configValue);
await admin.deleteTopics({ topics: [topic] });
await settle();
see("still listed", (await admin.listTopics()).includes(topic));
await admin.disconnect();
see("done", "yes");
process.exit(0);
