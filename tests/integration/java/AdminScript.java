import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListConfigResourcesOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.ScramCredentialInfo;
import org.apache.kafka.clients.admin.ScramMechanism;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.admin.UserScramCredentialUpsertion;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
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

/**
 * What an operator does with the Java AdminClient, good and bad, where there are no records and no groups.
 *
 * <p>Arguments: bootstrap servers, topic. One line "NAME = VALUE" for every thing seen. After each write a line "settle":
 * the program goes on once a line comes back, so that whoever runs it decides what a later read may rely on.
 */
public final class AdminScript {
    private static final Map<Integer, List<Integer>> REPLICAS = Map.of(0, List.of(1, 2), 1, List.of(2, 3), 2, List.of(3, 1));

    private final Admin admin;
    private final String topic;
    private final ConfigResource resource;

    private AdminScript(Admin admin, String topic) {
        this.admin = admin;
        this.topic = topic;
        this.resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
    }

    public static void main(String[] args) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
            AdminScript script = new AdminScript(admin, args[1]);
            script.cluster();
            script.topics();
            script.access();
            script.refusals();
            script.end();
        }
        see("done", "yes");
    }

    private void cluster() throws Exception {
        see("cluster", admin.describeCluster().clusterId().get());
        see("nodes", sorted(admin.describeCluster().nodes().get().stream().map(AdminScript::place).toList()));
        see("voters", admin.describeMetadataQuorum().quorumInfo().get().voters().size());
        see("features", new TreeMap<>(admin.describeFeatures().featureMetadata().get().finalizedFeatures()));
        see("groups", admin.listGroups().all().get());
        see("log dirs", sorted(admin.describeLogDirs(List.of(1, 2, 3)).allDescriptions().get().keySet()));
    }

    private void topics() throws Exception {
        NewTopic wanted = new NewTopic(topic, REPLICAS).configs(Map.of("retention.ms", "3600000"));
        see("created", admin.createTopics(List.of(wanted)).numPartitions(topic).get());
        settle();
        see("described", described());
        see("listed", admin.listTopics().names().get().contains(topic));
        see("config", retention());
        AlterConfigOp set = new AlterConfigOp(new ConfigEntry("retention.ms", "7200000"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, List.of(set))).all().get();
        settle();
        see("altered", retention());
        see("resources", admin.listConfigResources(Set.of(ConfigResource.Type.TOPIC), new ListConfigResourcesOptions()).all().get().contains(resource));
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(4, List.of(List.of(1, 3))))).all().get();
        settle();
        see("widened", described());
    }

    private void access() throws Exception {
        AclBinding rule = new AclBinding(
                new ResourcePattern(ResourceType.TOPIC, topic, PatternType.LITERAL),
                new AccessControlEntry("User:carol", "*", AclOperation.READ, AclPermissionType.ALLOW));
        admin.createAcls(List.of(rule)).all().get();
        settle();
        see("granted", admin.describeAcls(rule.toFilter()).values().get().size());
        admin.deleteAcls(List.of(rule.toFilter())).all().get();
        settle();
        see("revoked", admin.describeAcls(rule.toFilter()).values().get().size());

        ScramCredentialInfo info = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192);
        admin.alterUserScramCredentials(List.of(new UserScramCredentialUpsertion(topic, info, "secret"))).all().get();
        settle();
        see("scram", admin.describeUserScramCredentials(List.of(topic)).description(topic).get().credentialInfos());

        ClientQuotaEntity entity = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, topic));
        ClientQuotaAlteration.Op rate = new ClientQuotaAlteration.Op("consumer_byte_rate", 5000.0);
        admin.alterClientQuotas(List.of(new ClientQuotaAlteration(entity, List.of(rate)))).all().get();
        settle();
        see("quotas", admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().get(entity));
    }

    private void refusals() throws Exception {
        refused("exists", admin.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all());
        refused("too wide", admin.createTopics(List.of(new NewTopic(topic + "-wide", 1, (short) 9))).all());
        refused("bad name", admin.createTopics(List.of(new NewTopic("a/b", Optional.empty(), Optional.empty()))).all());
        NewTopic odd = new NewTopic(topic + "-odd", 1, (short) 1).configs(Map.of("retention.mss", "5"));
        refused("unknown config", admin.createTopics(List.of(odd)).all());
        refused("fewer", admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(2))).all());
        refused("absent", admin.describeTopics(List.of(topic + "-absent")).allTopicNames());
        AlterConfigOp wrong = new AlterConfigOp(new ConfigEntry("retention.ms", "soon"), AlterConfigOp.OpType.SET);
        refused("bad value", admin.incrementalAlterConfigs(Map.of(resource, List.of(wrong))).all());
        refused("nobody", admin.describeUserScramCredentials(List.of(topic + "-absent")).description(topic + "-absent"));
    }

    private void end() throws Exception {
        admin.deleteTopics(List.of(topic)).all().get();
        settle();
        see("still listed", admin.listTopics().names().get().contains(topic));
    }

    private List<String> described() throws Exception {
        TopicDescription found = admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        return found.partitions().stream()
                .map(p -> p.partition() + " led by " + place(p.leader()) + " of " + p.replicas().stream().map(Node::id).toList())
                .toList();
    }

    private String retention() throws Exception {
        ConfigEntry entry = admin.describeConfigs(List.of(resource)).all().get().get(resource).get("retention.ms");
        return entry.value() + " " + entry.source();
    }

    private void refused(String name, KafkaFuture<?> call) throws Exception {
        try {
            call.get();
            see(name, "not refused");
        } catch (ExecutionException error) {
            see(name, error.getCause().getClass().getSimpleName() + ": " + error.getCause().getMessage());
        }
    }

    private static String place(Node node) {
        return node.id() + "@" + node.host() + ":" + node.port();
    }

    private static <T extends Comparable<T>> List<T> sorted(Iterable<T> values) {
        List<T> all = new ArrayList<>();
        values.forEach(all::add);
        return all.stream().sorted().collect(Collectors.toList());
    }

    private static void see(String name, Object value) {
        System.out.println(name + " = " + String.valueOf(value).replace('\n', ' '));
    }

    private static void settle() throws Exception {
        System.out.println("settle");
        System.in.read();
    }
}
