import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's console tools one after the other in one JVM, which saves the start of many.
 *
 * <p>Reads one JSON object a line: {"tool": main class, "args": [...], "stdin": text}; answers each with one:
 * {"code": exit code, "out": text, "err": text}. Every run loads the classes of the tools anew, so that none sees what
 * another left in a static field. Tools that do their work as the process ends, such as VerifiableProducer, are no use here.
 */
public final class Console {
    private static final String TOOLS = "org.apache.kafka.tools.";

    /** Ends a run where the tool would have ended its process; the first one counts, for some tools catch it. */
    private static final class Exited extends RuntimeException {
        private static Integer code;

        private Exited(int code) {
            super(null, null, false, false);
            if (Exited.code == null) {
                Exited.code = code;
            }
        }
    }

    private static final class FreshTools extends ClassLoader {
        private FreshTools() {
            super(Console.class.getClassLoader());
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith(TOOLS)) {
                return super.loadClass(name, resolve);
            }
            synchronized (getClassLoadingLock(name)) {
                Class<?> loaded = findLoadedClass(name);
                return loaded == null ? define(name) : loaded;
            }
        }

        private Class<?> define(String name) throws ClassNotFoundException {
            try (InputStream file = getResourceAsStream(name.replace('.', '/') + ".class")) {
                if (file == null) {
                    throw new ClassNotFoundException(name);
                }
                byte[] bytes = file.readAllBytes();
                return defineClass(name, bytes, 0, bytes.length);
            } catch (IOException error) {
                throw new ClassNotFoundException(name, error);
            }
        }
    }

    public static void main(String[] unused) throws Exception {
        ObjectMapper json = new ObjectMapper();
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = System.out;
        Exit.Procedure exit = (code, message) -> {
            throw new Exited(code);
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            JsonNode order = json.readTree(line);
            List<String> args = new ArrayList<>();
            order.get("args").forEach(arg -> args.add(arg.asText()));
            answers.println(json.writeValueAsString(run(order.get("tool").asText(), args, order.get("stdin").asText())));
        }
    }

    private static Map<String, Object> run(String tool, List<String> args, String stdin) throws Exception {
        PrintStream out = System.out;
        PrintStream err = System.err;
        ByteArrayOutputStream outBytes = new ByteArrayOutputStream();
        ByteArrayOutputStream errBytes = new ByteArrayOutputStream();
        System.setIn(new ByteArrayInputStream(stdin.getBytes(StandardCharsets.UTF_8)));
        System.setOut(new PrintStream(outBytes, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(errBytes, true, StandardCharsets.UTF_8));
        Exited.code = null;
        int code = 0;
        try {
            Class<?> main = new FreshTools().loadClass(tool);
            main.getMethod("main", String[].class).invoke(null, (Object) args.toArray(String[]::new));
        } catch (InvocationTargetException error) {
            if (!(error.getCause() instanceof Exited)) {
                code = 1;
                error.getCause().printStackTrace();
            }
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        String printed = outBytes.toString(StandardCharsets.UTF_8);
        code = Exited.code == null ? code : Exited.code;
        return Map.of("code", code, "out", printed, "err", errBytes.toString(StandardCharsets.UTF_8));
    }
}
