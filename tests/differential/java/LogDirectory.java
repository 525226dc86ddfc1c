import kafka.tools.StorageTool;
import java.io.File;
import java.io.IOException;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.raft.ElectionState;
import org.apache.kafka.raft.FileQuorumStateStore;
import org.apache.kafka.raft.MetadataLogConfig;
import org.apache.kafka.raft.internals.KafkaRaftLog;
import org.apache.kafka.server.common.KRaftVersion;
import org.apache.kafka.server.util.KafkaScheduler;
import org.apache.kafka.tools.DumpLogSegments;

/**
 * Opens the directory of a metadata log with Kafka's own classes and goes on with it.
 *
 * <p>Arguments: the directory of the log, an epoch, a number of records, the node's properties. Has StorageTool judge the
 * node's directory, dumps all segments and snapshots, says what Kafka's log and quorum state find, then leads in that
 * epoch: saves it, and appends the records, one a batch, in small segments. Dumps in the end what it has written.
 */
public final class LogDirectory {
    public static void main(String[] args) throws Exception {
        File directory = new File(args[0]);
        int epoch = Integer.parseInt(args[1]);
        int code = StorageTool.execute(new String[] {"info", "--config", args[3]}, System.out);
        System.out.printf("info %d%n", code);
        dump(directory, 0);
        FileQuorumStateStore store =
                new FileQuorumStateStore(new File(directory, FileQuorumStateStore.DEFAULT_FILE_NAME));
        ElectionState election = store.readElectionState().orElseThrow();
        System.out.printf(
                "election %d %d %d%n",
                election.epoch(), election.optionalLeaderId().orElse(-1), election.votedKey().id());
        KafkaScheduler scheduler = new KafkaScheduler(1);
        scheduler.startup();
        KafkaRaftLog log = KafkaRaftLog.createLog(
                new TopicPartition("__cluster_metadata", 0),
                Uuid.METADATA_TOPIC_ID,
                directory,
                Time.SYSTEM,
                scheduler,
                new MetadataLogConfig(new AbstractConfig(
                        MetadataLogConfig.CONFIG_DEF,
                        Map.of(MetadataLogConfig.INTERNAL_METADATA_LOG_SEGMENT_BYTES_CONFIG, 512),
                        false)),
                election.optionalLeaderId().orElse(-1));
        long end = log.endOffset().offset();
        System.out.printf(
                "log %d %d %d %s%n",
                log.startOffset(), end, log.lastFetchedEpoch(), log.latestSnapshotId().orElseThrow());
        for (int old = 1; old < epoch; old++) {
            System.out.printf("epoch %d %s%n", old, log.endOffsetForEpoch(old));
        }
        store.writeElectionState(
                ElectionState.withElectedLeader(epoch, 2, Optional.empty(), Set.of(1, 2, 3)),
                KRaftVersion.KRAFT_VERSION_0);
        log.initializeLeaderEpoch(epoch);
        for (int i = 0; i < Integer.parseInt(args[2]); i++) {
            SimpleRecord record = new SimpleRecord(1000, ("kafka" + i).getBytes());
            log.appendAsLeader(MemoryRecords.withRecords(end + i, Compression.NONE, epoch, record), epoch);
        }
        log.flush(true);
        scheduler.shutdown();
        log.close();
        System.out.println("again");
        dump(directory, end);
    }

    /** All snapshots, and the segments that begin at an offset or behind it. */
    private static void dump(File directory, long from) throws IOException {
        String[] names = directory.list((folder, name) ->
                name.endsWith(".checkpoint") || name.endsWith(".log") && Long.parseLong(name.substring(0, 20)) >= from);
        StringBuilder paths = new StringBuilder();
        for (String name : names) {
            paths.append(paths.isEmpty() ? "" : ",").append(new File(directory, name));
        }
        DumpLogSegments.main(new String[] {"--cluster-metadata-decoder", "--files", paths.toString()});
    }
}
