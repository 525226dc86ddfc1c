import com.fasterxml.jackson.databind.ObjectMapper;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.core.LogEvent;
import org.apache.logging.log4j.core.LoggerContext;
import org.apache.logging.log4j.core.appender.AbstractAppender;
import org.apache.logging.log4j.core.config.Configuration;
import org.apache.logging.log4j.core.config.LoggerConfig;
import org.apache.logging.log4j.core.config.Property;

/**
 * Produces and consumes with the Java clients until told to stop; arguments and output are those of
 * `tests/support/steady_client.py`.
 */
public final class SteadyClient {
    private static final Duration PACE = Duration.ofMillis(2);
    private static final int REPORT_EVERY = 100;
    private static final long PATIENCE_NS = Duration.ofSeconds(30).toNanos();

    private static final Pattern CONNECT = Pattern.compile("Initiating connection to node [^ ]+:(\\d+) ");

    private static volatile boolean stop;

    /** Keeps the ports of the clients' own lines about connections. */
    private static final class Connects extends AbstractAppender {
        private final Set<Integer> ports = new ConcurrentSkipListSet<>();

        private Connects() {
            super("connects", null, null, true, Property.EMPTY_ARRAY);
        }

        @Override
        public void append(LogEvent event) {
            Matcher found = CONNECT.matcher(event.getMessage().getFormattedMessage());
            if (found.find()) {
                ports.add(Integer.parseInt(found.group(1)));
            }
        }

        private void attach(String logger) {
            LoggerContext context = LoggerContext.getContext(false);
            Configuration configuration = context.getConfiguration();
            LoggerConfig config = new LoggerConfig(logger, Level.DEBUG, false);
            start();
            config.addAppender(this, Level.DEBUG, null);
            configuration.addLogger(logger, config);
            context.updateLoggers();
        }
    }

    private final List<Integer> seen = new ArrayList<>();
    private final KafkaConsumer<String, String> consumer;

    private SteadyClient(KafkaConsumer<String, String> consumer) {
        this.consumer = consumer;
    }

    public static void main(String[] args) throws Exception {
        String topic = args[1];
        Connects connects = new Connects();
        connects.attach("org.apache.kafka.clients.NetworkClient");
        Thread waiter = new Thread(SteadyClient::waitForEnd);
        waiter.setDaemon(true);
        waiter.start();
        List<String> errors = Collections.synchronizedList(new ArrayList<>());
        int sent = 0;
        Map<String, Object> common = Map.of("bootstrap.servers", args[0]);
        Map<String, Object> reading =
            Map.of("bootstrap.servers", args[0], "group.id", topic + "-group", "auto.offset.reset", "earliest");
        List<Integer> seen;
        try (var producer = new KafkaProducer<>(common, new StringSerializer(), new StringSerializer());
            var consumer = new KafkaConsumer<>(reading, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(List.of(topic));
            SteadyClient client = new SteadyClient(consumer);
            while (!stop) {
                producer.send(new ProducerRecord<>(topic, Integer.toString(sent++)), (metadata, error) -> {
                    if (error != null) {
                        errors.add("delivery: " + error);
                    }
                });
                client.take(PACE);
            }
            producer.flush();
            long start = System.nanoTime();
            while (new HashSet<>(client.seen).size() < sent && System.nanoTime() - start < PATIENCE_NS) {
                client.take(Duration.ofMillis(100));
            }
            seen = client.seen;
        }
        System.out.println(new ObjectMapper().writeValueAsString(result(sent, seen, errors, connects.ports)));
    }

    private static void waitForEnd() {
        try {
            while (System.in.read() != -1) {
                continue;
            }
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        } finally {
            stop = true;
        }
    }

    private void take(Duration timeout) {
        for (ConsumerRecord<String, String> record : consumer.poll(timeout)) {
            seen.add(Integer.parseInt(record.value()));
            if (seen.size() % REPORT_EVERY == 0) {
                System.out.println("progress " + seen.size());
            }
        }
    }

    private static Map<String, Object> result(
        int sent, List<Integer> seen, List<String> errors, Set<Integer> connects) {
        Set<Integer> different = new HashSet<>(seen);
        int outOfOrder = 0;
        for (int i = 1; i < seen.size(); i++) {
            outOfOrder += seen.get(i) < seen.get(i - 1) ? 1 : 0;
        }
        Map<String, Object> result = new LinkedHashMap<>();
        result.put("sent", sent);
        result.put("consumed", different.size());
        result.put("repeated", seen.size() - different.size());
        result.put("lost", sent - different.size());
        result.put("out_of_order", outOfOrder);
        result.put("errors", errors);
        result.put("connects", connects);
        return result;
    }
}
