import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.metadata.authorizer.StandardAcl;
import org.apache.kafka.metadata.authorizer.StandardAuthorizer;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;

/**
 * Kafka's StandardAuthorizer, told and asked line by line; fields are separated by tabs, numbers are Kafka's codes.
 *
 * <pre>
 * begin  super.users  allow.everyone.if.no.acl.found     a new authorizer
 * acl    resource type, name, pattern type, principal, host, operation, permission
 * ask    principal, host, operation, resource type, name  ->  ALLOWED or DENIED
 * </pre>
 */
public class Authorizer {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StandardAuthorizer authorizer = null;
        String line;
        while ((line = lines.readLine()) != null) {
            String[] part = line.split("\t", -1);
            switch (part[0]) {
                case "begin" -> {
                    authorizer = new StandardAuthorizer();
                    authorizer.configure(Map.of(
                        "node.id", "1",
                        StandardAuthorizer.SUPER_USERS_CONFIG, part[1],
                        StandardAuthorizer.ALLOW_EVERYONE_IF_NO_ACL_IS_FOUND_CONFIG, part[2]));
                    authorizer.withPluginMetrics(new PluginMetricsImpl(new Metrics(), new LinkedHashMap<>()));
                    authorizer.completeInitialLoad();
                }
                case "acl" -> authorizer.addAcl(Uuid.randomUuid(), new StandardAcl(
                    ResourceType.fromCode(Byte.parseByte(part[1])), part[2],
                    PatternType.fromCode(Byte.parseByte(part[3])), part[4], part[5],
                    AclOperation.fromCode(Byte.parseByte(part[6])),
                    AclPermissionType.fromCode(Byte.parseByte(part[7]))));
                case "ask" -> {
                    ResourcePattern pattern = new ResourcePattern(
                        ResourceType.fromCode(Byte.parseByte(part[4])), part[5], PatternType.LITERAL);
                    Action action = new Action(
                        AclOperation.fromCode(Byte.parseByte(part[3])), pattern, 1, false, false);
                    System.out.println(authorizer.authorize(new Asker(part[1], part[2]), List.of(action)).get(0));
                }
                default -> throw new IllegalArgumentException(line);
            }
        }
    }

    record Asker(String name, String host) implements AuthorizableRequestContext {
        @Override public String listenerName() { return "L"; }
        @Override public SecurityProtocol securityProtocol() { return SecurityProtocol.PLAINTEXT; }
        @Override public KafkaPrincipal principal() {
            int colon = name.indexOf(':');
            return new KafkaPrincipal(name.substring(0, colon), name.substring(colon + 1));
        }
        @Override public InetAddress clientAddress() {
            try {
                return InetAddress.getByName(host);
            } catch (java.net.UnknownHostException e) {
                throw new IllegalArgumentException(e);
            }
        }
        @Override public int requestType() { return 3; }
        @Override public int requestVersion() { return 0; }
        @Override public String clientId() { return "c"; }
        @Override public int correlationId() { return 1; }
    }
}
