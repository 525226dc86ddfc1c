import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Speaks to a Kafka with its own clients. Before each call it prints `call NAME` and waits for a line. */
public final class CaptureClient {
    private static final BufferedReader ORDERS = new BufferedReader(new InputStreamReader(System.in));

    private interface Call {
        void run() throws Exception;
    }

    private static void call(String name, Call call) throws Exception {
        System.out.println("call " + name);
        if (ORDERS.readLine() == null) {
            System.exit(1);
        }
        call.run();
    }

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        System.out.println("client java " + args[2]);
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[0]);
        properties.put("client.id", "capture");
        properties.put("enable.metrics.push", "false");
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        AclBinding acl = new AclBinding(
                new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
                new AccessControlEntry("User:carol", "*", AclOperation.READ, AclPermissionType.ALLOW));
        AclBindingFilter filter = acl.toFilter();
        try (Admin admin = Admin.create(properties)) {
            call("listTopics", () -> admin.listTopics().names().get());
            call("createTopics", () -> admin.createTopics(List.of(
                    new NewTopic(topic, 2, (short) 1).configs(Map.of("retention.ms", "3600000")))).all().get());
            call("describeTopics", () -> admin.describeTopics(List.of(topic)).allTopicNames().get());
            call("describeConfigs", () -> admin.describeConfigs(List.of(resource)).all().get());
            call("incrementalAlterConfigs", () -> admin.incrementalAlterConfigs(Map.of(resource, List.of(
                    new AlterConfigOp(new ConfigEntry("retention.ms", "7200000"), AlterConfigOp.OpType.SET))))
                    .all().get());
            call("createPartitions", () -> admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3))).all().get());
            call("describeCluster", () -> admin.describeCluster().nodes().get());
            call("createAcls", () -> admin.createAcls(List.of(acl)).all().get());
            call("describeAcls", () -> admin.describeAcls(filter).values().get());
            call("deleteAcls", () -> admin.deleteAcls(List.of(filter)).all().get());
            call("describeClientQuotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get());
            call("describeUserScramCredentials", () -> admin.describeUserScramCredentials().all().get());
            call("describeLogDirs", () -> admin.describeLogDirs(Set.of(1)).allDescriptions().get());
            call("describeMetadataQuorum", () -> admin.describeMetadataQuorum().quorumInfo().get());
            call("listPartitionReassignments", () -> admin.listPartitionReassignments().reassignments().get());
            call("send", () -> {
                try (KafkaProducer<String, String> producer =
                        new KafkaProducer<>(properties, new StringSerializer(), new StringSerializer())) {
                    producer.send(new ProducerRecord<>(topic, "k", "v")).get();
                }
            });
            call("poll", () -> {
                Properties consuming = new Properties();
                consuming.putAll(properties);
                consuming.put("group.id", topic);
                consuming.put("auto.offset.reset", "earliest");
                try (KafkaConsumer<String, String> consumer =
                        new KafkaConsumer<>(consuming, new StringDeserializer(), new StringDeserializer())) {
                    consumer.subscribe(List.of(topic));
                    while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) {}
                }
            });
            call("deleteTopics", () -> admin.deleteTopics(List.of(topic)).all().get());
        }
    }
}
