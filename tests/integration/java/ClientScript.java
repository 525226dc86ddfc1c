import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaAlteration;
import org.apache.kafka.common.quota.ClientQuotaEntity;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What an application and its operator do with the Java clients, from the creation of a topic to its end.
 *
 * <p>Arguments: bootstrap servers, topic. One line "NAME = VALUE" for every thing seen. After each write a line "settle"
 * or "settle access": the program goes on once a line comes back, so that whoever runs it decides what a later read may
 * rely on.
 */
public final class ClientScript {
    private static final int RECORDS = 10_000;
    private static final Map<Integer, List<Integer>> REPLICAS = Map.of(0, List.of(1, 2), 1, List.of(2, 3), 2, List.of(3, 1));
    private static final Duration POLL = Duration.ofMillis(500);
    private static final long PATIENCE_NS = Duration.ofSeconds(60).toNanos();

    private final String bootstrap;
    private final String topic;
    private final Admin admin;

    private ClientScript(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] args) throws Exception {
        ClientScript script = new ClientScript(args[0], args[1]);
        script.administer();
        script.exchange();
        script.transact();
        script.access();
        script.end();
        script.admin.close();
        System.out.println("done = yes");
    }

    private static void see(String name, Object value) {
        System.out.println(name + " = " + value);
    }

    private static void settle(String what) throws Exception {
        System.out.println(what);
        int read;
        do {
            read = System.in.read();
        } while (read != '\n' && read != -1);
    }

    private static String place(Node node) {
        return node.id() + "@" + node.host() + ":" + node.port();
    }

    private void administer() throws Exception {
        NewTopic wanted = new NewTopic(topic, REPLICAS).configs(Map.of("retention.ms", "3600000"));
        admin.createTopics(List.of(wanted)).all().get();
        settle("settle");
        see("described", described());
        see("config", retention());
        var cluster = admin.describeCluster();
        see("cluster", cluster.clusterId().get());
        see("nodes", cluster.nodes().get().stream().map(ClientScript::place).sorted().toList());
        see("log dirs", admin.describeLogDirs(List.of(1, 2, 3)).allDescriptions().get().keySet());

        AlterConfigOp set = new AlterConfigOp(new ConfigEntry("retention.ms", "7200000"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource(), List.of(set))).all().get();
        settle("settle");
        see("altered", retention());

        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4, List.of(List.of(1, 3))))).all().get();
        settle("settle");
        see("widened", described());

        TopicPartition moved = new TopicPartition(topic, 3);
        var target = Optional.of(new NewPartitionReassignment(List.of(3, 1)));
        admin.alterPartitionReassignments(Map.of(moved, target)).all().get();
        settle("settle");
        see("reassigned", replicas(3));
    }

    private ConfigResource resource() {
        return new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    private List<String> described() throws Exception {
        TopicDescription found = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        return found.partitions().stream()
            .map(p -> p.partition() + " " + place(p.leader()) + " " + p.replicas().stream().map(ClientScript::place).toList())
            .toList();
    }

    private Set<Integer> replicas(int partition) throws Exception {
        TopicDescription found = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        return found.partitions().get(partition).replicas().stream().map(Node::id).collect(Collectors.toSet());
    }

    private String retention() throws Exception {
        Config found = admin.describeConfigs(List.of(resource())).all().get().get(resource());
        return found.get("retention.ms").value() + " " + found.get("retention.ms").source();
    }

    /** 10 000 records by the classic group protocol, and again by the one of KIP-848. */
    private void exchange() throws Exception {
        int[] delivered = new int[3];
        try (KafkaProducer<String, String> producer = producer(Map.of())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int i = 0; i < RECORDS; i++) {
                sent.add(producer.send(new ProducerRecord<>(topic, i % 3, "key-" + i, "value-" + i)));
            }
            for (Future<RecordMetadata> each : sent) {
                delivered[each.get().partition()]++;
            }
        }
        see("delivered", List.of(delivered[0], delivered[1], delivered[2]));
        for (String protocol : List.of("classic", "consumer")) {
            String group = topic + "-" + protocol;
            see("consumed " + protocol, consume(group, RECORDS, Map.of("group.protocol", protocol)));
            see("committed " + protocol, committed(group));
            var described = admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            see("group " + protocol, described.groupState() + " " + described.type());
            see("coordinator " + protocol + " is a node", place(described.coordinator()));
            admin.deleteConsumerGroups(List.of(group)).all().get();
        }
        var ends = admin.listOffsets(
            IntStream.range(0, 3).boxed().collect(Collectors.toMap(p -> new TopicPartition(topic, p), p -> OffsetSpec.latest())));
        see("end of 0", ends.partitionResult(new TopicPartition(topic, 0)).get().offset());
    }

    private KafkaProducer<String, String> producer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", bootstrap);
        return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
    }

    /** The number of records of each partition and a digest of their values in order. */
    private Map<Integer, String> consume(String group, int count, Map<String, Object> more) throws Exception {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", bootstrap);
        settings.put("group.id", group);
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", false);
        Map<Integer, List<String>> values = new TreeMap<>();
        int seen = 0;
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            long start = System.nanoTime();
            while (seen < count && System.nanoTime() - start < PATIENCE_NS) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    values.computeIfAbsent(record.partition(), p -> new ArrayList<>()).add(record.value());
                    seen++;
                }
            }
            consumer.commitSync();
        }
        Map<Integer, String> digests = new TreeMap<>();
        for (var entry : values.entrySet()) {
            digests.put(entry.getKey(), entry.getValue().size() + " " + digest(entry.getValue()));
        }
        return digests;
    }

    private static String digest(Collection<String> values) throws Exception {
        byte[] hash = MessageDigest.getInstance("SHA-256").digest(String.join(",", values).getBytes(StandardCharsets.UTF_8));
        return HexFormat.of().formatHex(hash, 0, 8);
    }

    private Map<Integer, Long> committed(String group) throws Exception {
        var options = new ListConsumerGroupOffsetsOptions().requireStable(true);
        Map<Integer, Long> offsets = new TreeMap<>();
        admin.listConsumerGroupOffsets(group, options).partitionsToOffsetAndMetadata().get()
            .forEach((partition, offset) -> offsets.put(partition.partition(), offset.offset()));
        return offsets;
    }

    /** 100 records each: committed, aborted, committed. */
    private void transact() throws Exception {
        String name = topic + "-tx";
        admin.createTopics(List.of(new NewTopic(name, Map.of(0, List.of(2))))).all().get();
        settle("settle");
        try (KafkaProducer<String, String> producer = producer(Map.of("transactional.id", name))) {
            producer.initTransactions();
            for (String word : List.of("first", "second", "third")) {
                producer.beginTransaction();
                for (int i = 0; i < 100; i++) {
                    producer.send(new ProducerRecord<>(name, word + "-" + i));
                }
                producer.flush();
                if (word.equals("second")) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        for (String isolation : List.of("read_committed", "read_uncommitted")) {
            see(isolation, readAll(name, isolation, isolation.equals("read_committed") ? 200 : 300));
        }
        see("transaction", admin.describeTransactions(List.of(name)).description(name).get().state());
        admin.deleteTopics(List.of(name)).all().get();
    }

    private Map<String, Integer> readAll(String name, String isolation, int count) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "isolation.level", isolation);
        Map<String, Integer> words = new TreeMap<>();
        int seen = 0;
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> all = List.of(new TopicPartition(name, 0));
            consumer.assign(all);
            consumer.seekToBeginning(all);
            long start = System.nanoTime();
            while (seen < count && System.nanoTime() - start < PATIENCE_NS) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    words.merge(record.value().split("-")[0], 1, Integer::sum);
                    seen++;
                }
            }
        }
        return words;
    }

    private void access() throws Exception {
        ResourcePattern pattern = new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL);
        AclBinding acl = new AclBinding(
            pattern, new AccessControlEntry("User:carol", "*", AclOperation.READ, AclPermissionType.ALLOW));
        admin.createAcls(List.of(acl)).all().get();
        settle("settle access");
        see("granted", admin.describeAcls(acl.toFilter()).values().get().size());
        admin.deleteAcls(List.of(acl.toFilter())).all().get();
        settle("settle access");
        see("revoked", admin.describeAcls(acl.toFilter()).values().get().size());

        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, topic));
        var limit = new ClientQuotaAlteration.Op("producer_byte_rate", 1e6);
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(limit)))).all().get();
        settle("settle");
        see("quota", admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().get(entity));

        var info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096);
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(topic, info, "secret"))).all().get();
        settle("settle");
        var credentials = admin.describeUserScramCredentials(List.of(topic)).description(topic).get().credentialInfos();
        see("scram", credentials.stream().map(c -> c.mechanism() + " " + c.iterations()).toList());
    }

    private void end() throws Exception {
        see("listed", admin.listTopics().names().get().contains(topic));
        admin.deleteTopics(List.of(topic)).all().get();
        settle("settle");
        see("still listed", admin.listTopics().names().get().contains(topic));
    }
}
