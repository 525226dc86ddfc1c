import java.util.Map;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.ClientQuotaFilter;

/** Calls of the Java AdminClient, one for each line of standard input; says how each ended in one line. */
public class HeldReads {
    public static void main(String[] args) throws Exception {
        Map<String, Object> settings = Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, args[0]);
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, args[1]);
        try (Admin admin = Admin.create(settings)) {
            Map<String, Callable<Object>> calls = Map.of(
                "describeConfigs", () -> admin.describeConfigs(List.of(topic)).all().get().size(),
                "describeClientQuotas", () -> admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().size());
            Scanner lines = new Scanner(System.in);
            while (lines.hasNextLine()) {
                String name = lines.nextLine();
                System.out.println(name + ": " + ending(calls.get(name)));
            }
        }
    }

    private static String ending(Callable<Object> call) throws Exception {
        try {
            call.call();
            return "answered";
        } catch (ExecutionException error) {
            return error.getCause().getClass().getSimpleName() + ": " + error.getCause().getMessage();
        }
    }
}
