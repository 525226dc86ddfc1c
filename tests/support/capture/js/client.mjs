// Speaks to a Kafka with kafkajs, one call after the other. Before each it prints `call NAME` and waits for a line.
import { createRequire } from "node:module";
import readline from "node:readline";
import kafkajs from "kafkajs";

const { ConfigResourceTypes, Kafka, logLevel } = kafkajs;

const [bootstrap, topic] = process.argv.slice(2);
const orders = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { version } = createRequire(import.meta.url)("kafkajs/package.json");
console.log(`client kafkajs ${version}`);

async function call(name, run) {
  console.log(`call ${name}`);
  await orders.next();
  await run();
}

const kafka = new Kafka({ clientId: "capture", brokers: [bootstrap], logLevel: logLevel.ERROR });
const admin = kafka.admin();
const producer = kafka.producer();
const consumer = kafka.consumer({ groupId: topic });
const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic }];
const acl = {
  resourceType: 2, resourceName: topic, resourcePatternType: 3,
  principal: "User:carol", host: "*", operation: 3, permissionType: 3,
};

await call("connect", () => admin.connect());
await call("listTopics", () => admin.listTopics());
await call("createTopics", () => admin.createTopics({
  topics: [{ topic, numPartitions: 2, replicationFactor: 1, configEntries: [{ name: "retention.ms", value: "3600000" }] }],
}));
await call("fetchTopicMetadata", () => admin.fetchTopicMetadata({ topics: [topic] }));
await call("describeConfigs", () => admin.describeConfigs({ includeSynonyms: true, resources }));
await call("alterConfigs", () => admin.alterConfigs({
  validateOnly: false,
  resources: [{ ...resources[0], configEntries: [{ name: "retention.ms", value: "7200000" }] }],
}));
await call("createPartitions", () => admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] }));
await call("describeCluster", () => admin.describeCluster());
await call("createAcls", () => admin.createAcls({ acl: [acl] }));
await call("describeAcls", () => admin.describeAcls(acl));
await call("deleteAcls", () => admin.deleteAcls({ filters: [acl] }));
await call("send", async () => {
  await producer.connect();
  await producer.send({ topic, messages: [{ key: "k", value: "v", headers: { h: "x" } }] });
});
await call("run", async () => {
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await new Promise((resolve, reject) => {
    consumer.run({ eachMessage: async () => resolve() }).catch(reject);
  });
  await consumer.stop();
});
await call("listGroups", () => admin.listGroups());
await call("deleteTopics", () => admin.deleteTopics({ topics: [topic] }));
await Promise.all([consumer.disconnect(), producer.disconnect(), admin.disconnect()]);
process.exit(0);
