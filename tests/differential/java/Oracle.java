import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.InvocationTargetException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.metadata.MetadataRecordType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.*;

/**
 * Reads bytes with Kafka's own classes, tells what it read as JSON, and writes them anew.
 *
 * <p>One order a line, the bytes in hex, one answer a line: `ok HEX JSON`, `none` for what this version of Kafka does
 * not have, `wrong REASON`. Orders: `request KEY VERSION HEX`, `response ...`, `request-header ...`,
 * `response-header ...`, `metadata TYPE VERSION HEX`, `records HEX`, and `versions KEY`, answered by `FIRST LAST`.
 */
public final class Oracle {
    private static final ObjectMapper JSON =
            new ObjectMapper().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);
    private static final HexFormat HEX = HexFormat.of();

    private record Answer(byte[] bytes, JsonNode value) {}

    public static void main(String[] args) throws Exception {
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = orders.readLine(); line != null; line = orders.readLine()) {
            System.out.println(answer(line.split(" ", -1)));
            System.out.flush();
        }
    }

    private static String answer(String[] words) throws Exception {
        try {
            if (words[0].equals("versions")) {
                ApiMessage message = type(words[1]).newRequest();
                return message.lowestSupportedVersion() + " " + message.highestSupportedVersion();
            }
            Answer answer = words[0].equals("records")
                    ? records(HEX.parseHex(words[1]))
                    : message(words[0], words[1], Short.parseShort(words[2]), HEX.parseHex(words[3]));
            if (answer == null) {
                return "none";
            }
            return "ok " + HEX.formatHex(answer.bytes()) + " " + JSON.writeValueAsString(answer.value());
        } catch (NoSuchApi error) {
            return "none";
        } catch (InvocationTargetException error) {
            return "wrong " + error.getCause().toString().replace('\n', ' ');
        } catch (RuntimeException error) {
            return "wrong " + error.toString().replace('\n', ' ');
        }
    }

    private static Answer message(String kind, String key, short version, byte[] bytes) throws Exception {
        Message message;
        short tableVersion = version;
        switch (kind) {
            case "request" -> message = type(key).newRequest();
            case "response" -> message = type(key).newResponse();
            case "request-header" -> {
                message = new RequestHeaderData();
                tableVersion = type(key).requestHeaderVersion(version);
            }
            case "response-header" -> {
                message = new ResponseHeaderData();
                tableVersion = type(key).responseHeaderVersion(version);
            }
            case "metadata" -> message = record(key);
            default -> throw new IllegalArgumentException("no order " + kind);
        }
        if (tableVersion < message.lowestSupportedVersion() || tableVersion > message.highestSupportedVersion()) {
            return null;
        }
        ByteBufferAccessor in = new ByteBufferAccessor(ByteBuffer.wrap(bytes));
        message.read(in, tableVersion);
        if (in.remaining() > 0) {
            throw new IllegalStateException(in.remaining() + " bytes left over");
        }
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer out = ByteBuffer.allocate(message.size(cache, tableVersion));
        message.write(new ByteBufferAccessor(out), cache, tableVersion);
        Class<?> converter = Class.forName(message.getClass().getName() + "JsonConverter");
        Object json = converter
                .getMethod("write", message.getClass(), short.class, boolean.class)
                .invoke(null, message, tableVersion, false);
        return new Answer(out.array(), (JsonNode) json);
    }

    /** What Kafka read, and one batch of its own with the same records for each that it read. */
    private static Answer records(byte[] bytes) {
        ArrayNode batches = JSON.createArrayNode();
        ByteBuffer out = ByteBuffer.allocate(bytes.length + 1024);
        for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(bytes)).batches()) {
            batch.ensureValid();
            ObjectNode seen = batches.addObject();
            seen.put("base_offset", batch.baseOffset());
            seen.put("last_offset", batch.lastOffset());
            seen.put("size", batch.sizeInBytes());
            seen.put("partition_leader_epoch", batch.partitionLeaderEpoch());
            seen.put("compression", batch.compressionType().name);
            seen.put("max_timestamp", batch.maxTimestamp());
            seen.put("producer_id", batch.producerId());
            seen.put("producer_epoch", batch.producerEpoch());
            seen.put("base_sequence", batch.baseSequence());
            seen.put("is_transactional", batch.isTransactional());
            seen.put("is_control", batch.isControlBatch());
            ArrayNode records = seen.putArray("records");
            List<SimpleRecord> copies = new ArrayList<>();
            for (org.apache.kafka.common.record.internal.Record record : batch) {
                ObjectNode one = records.addObject();
                one.put("offset", record.offset());
                one.put("timestamp", record.timestamp());
                one.put("key", hex(record.key()));
                one.put("value", hex(record.value()));
                ArrayNode headers = one.putArray("headers");
                for (Header header : record.headers()) {
                    headers.addArray().add(header.key()).add(header.value() == null ? null : HEX.formatHex(header.value()));
                }
                copies.add(new SimpleRecord(record));
            }
            MemoryRecords copy = MemoryRecords.withRecords(
                    (byte) 2,
                    batch.baseOffset(),
                    Compression.NONE,
                    TimestampType.CREATE_TIME,
                    -1L,
                    (short) -1,
                    -1,
                    batch.partitionLeaderEpoch(),
                    false,
                    copies.toArray(new SimpleRecord[0]));
            out.put(copy.buffer().duplicate());
        }
        byte[] written = new byte[out.position()];
        out.flip().get(written);
        return new Answer(written, batches);
    }

    private static String hex(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HEX.formatHex(bytes);
    }

    private static ApiMessageType type(String key) {
        try {
            return ApiMessageType.fromApiKey(Short.parseShort(key));
        } catch (org.apache.kafka.common.errors.UnsupportedVersionException error) {
            throw new NoSuchApi();
        }
    }

    private static ApiMessage record(String type) {
        try {
            return MetadataRecordType.fromId(Short.parseShort(type)).newMetadataRecord();
        } catch (org.apache.kafka.common.errors.UnsupportedVersionException error) {
            throw new NoSuchApi();
        }
    }

    private static final class NoSuchApi extends RuntimeException {}
}
