// Java Paimon's core library on its own threads. Janino, which Spark ships, compiles it at run time, so it has no
// lambdas. Each thread has its share of the buckets, like the parallel writers of an engine. To find its rows, it decodes
// the whole input, which is a small part of a load.

import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;

import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.InternalRow;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.format.*;
import org.apache.paimon.fs.FileStatus;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.options.Options;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.schema.*;
import org.apache.paimon.table.*;
import org.apache.paimon.table.sink.*;
import org.apache.paimon.table.source.*;
import org.apache.paimon.types.RowType;

public class PaimonJava {
    private final LocalFileIO files = LocalFileIO.create();
    private int threads;
    private String scratch;

    public void start(int threads, String scratch) {
        this.threads = threads;
        this.scratch = scratch;
    }

    private FileStoreTable table(String path) throws Exception {
        return FileStoreTableFactory.create(files, new Path(path));
    }

    // Creates a table with the columns, keys and options of another one.
    public void create(String path, String like) throws Exception {
        TableSchema schema = table(like).schema();
        Schema same = new Schema(
            schema.fields(), schema.partitionKeys(), schema.primaryKeys(), schema.options(), schema.comment());
        new SchemaManager(files, new Path(path)).createTable(same);
    }

    // -- writes ---------------------------------------------------------------------------------------------------

    // Appends the rows of a folder of Parquet files in one commit.
    public void write(String path, final String source) throws Exception {
        final FileStoreTable table = table(path);
        commit(table, new Share() {
            public void of(TableWriteImpl writer, int number) throws Exception {
                append(table, writer, new Path(source), number);
            }
        });
    }

    // Compacts every bucket fully, like a dedicated compaction of a write-only table.
    public void compact(String path) throws Exception {
        final FileStoreTable table = table(path).copy(Collections.singletonMap("write-only", "false"));
        commit(table, new Share() {
            public void of(TableWriteImpl writer, int number) throws Exception {
                for (int bucket = number; bucket < table.coreOptions().bucket(); bucket += threads) {
                    writer.compact(BinaryRow.EMPTY_ROW, bucket, true);
                }
            }
        });
    }

    public interface Share {
        void of(TableWriteImpl writer, int number) throws Exception;
    }

    private void commit(final FileStoreTable table, final Share share) throws Exception {
        final String user = UUID.randomUUID().toString();
        List work = new ArrayList();
        for (int i = 0; i < threads; i++) {
            final int number = i;
            work.add(new Callable() {
                public Object call() throws Exception {
                    TableWriteImpl writer = table.newWrite(user);
                    writer.withIOManager(IOManager.create(scratch));
                    try {
                        share.of(writer, number);
                        return writer.prepareCommit(true, 1L);
                    } finally {
                        writer.close();
                    }
                }
            });
        }
        List messages = new ArrayList();
        Iterator results = all(work).iterator();
        while (results.hasNext()) messages.addAll((List) results.next());
        TableCommitImpl commit = table.newCommit(user);
        try {
            commit.commit(1L, messages);
        } finally {
            commit.close();
        }
    }

    private void append(FileStoreTable table, TableWriteImpl writer, Path source, int number) throws Exception {
        RowType type = table.rowType();
        FormatReaderFactory factory =
            FileFormat.fromIdentifier("parquet", new Options()).createReaderFactory(type, type, null);
        FileStatus[] found = files.listStatus(source);
        for (int i = 0; i < found.length; i++) {
            if (!found[i].getPath().getName().endsWith(".parquet")) continue;
            RecordReader reader =
                factory.createReader(new FormatReaderContext(files, found[i].getPath(), found[i].getLen()));
            RecordReader.RecordIterator batch = reader.readBatch();
            while (batch != null) {
                Object row = batch.next();
                while (row != null) {
                    int bucket = writer.getBucket((InternalRow) row);
                    if (bucket % threads == number) writer.write((InternalRow) row, bucket);
                    row = batch.next();
                }
                batch.releaseBatch();
                batch = reader.readBatch();
            }
            reader.close();
        }
    }

    // -- reads ----------------------------------------------------------------------------------------------------

    // Returns the number of rows and the sums of id, quantity and amount (in cents), for all rows or those with quantity < below.
    public long[] read(String path, int below) throws Exception {
        FileStoreTable table = table(path);
        RowType type = table.rowType();
        final int id = type.getFieldIndex("id");
        final int quantity = type.getFieldIndex("quantity");
        final int amount = type.getFieldIndex("amount");
        ReadBuilder builder = table.newReadBuilder();
        boolean filtered = below > 0;
        if (filtered) builder.withFilter(new PredicateBuilder(type).lessThan(quantity, Integer.valueOf(below)));
        return drain(builder, filtered, new Sums() {
            public void add(long[] sums, InternalRow row) {
                sums[0]++;
                sums[1] += row.getLong(id);
                sums[2] += row.getInt(quantity);
                sums[3] += row.getDecimal(amount, 12, 2).toUnscaledLong();
            }
        });
    }

    // Counts the rows by reading only the key column.
    public long count(String path) throws Exception {
        ReadBuilder builder = table(path).newReadBuilder().withProjection(new int[] {0});
        return drain(builder, false, new Sums() {
            public void add(long[] sums, InternalRow row) {
                sums[0]++;
            }
        })[0];
    }

    // Counts the rows of a merged table and decodes every column.
    public long rows(String path) throws Exception {
        return drain(table(path).newReadBuilder(), false, new Sums() {
            public void add(long[] sums, InternalRow row) {
                sums[0]++;
            }
        })[0];
    }

    public interface Sums {
        void add(long[] sums, InternalRow row);
    }

    private long[] drain(final ReadBuilder builder, final boolean filtered, final Sums sums) throws Exception {
        final List splits = builder.newScan().plan().splits();
        final AtomicInteger next = new AtomicInteger();
        List work = new ArrayList();
        for (int i = 0; i < threads; i++) {
            work.add(new Callable() {
                public Object call() throws Exception {
                    long[] result = new long[4];
                    TableRead read = builder.newRead();
                    read.withIOManager(IOManager.create(scratch));
                    if (filtered) read.executeFilter();
                    for (int at = next.getAndIncrement(); at < splits.size(); at = next.getAndIncrement()) {
                        RecordReader reader = read.createReader((Split) splits.get(at));
                        RecordReader.RecordIterator batch = reader.readBatch();
                        while (batch != null) {
                            Object row = batch.next();
                            while (row != null) {
                                sums.add(result, (InternalRow) row);
                                row = batch.next();
                            }
                            batch.releaseBatch();
                            batch = reader.readBatch();
                        }
                        reader.close();
                    }
                    return result;
                }
            });
        }
        long[] total = new long[4];
        Iterator results = all(work).iterator();
        while (results.hasNext()) {
            long[] part = (long[]) results.next();
            for (int i = 0; i < total.length; i++) total[i] += part[i];
        }
        return total;
    }

    // Returns the results of all tasks, each run in a separate thread.
    private List all(List work) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List results = new ArrayList();
            Iterator futures = pool.invokeAll(work).iterator();
            while (futures.hasNext()) results.add(((Future) futures.next()).get());
            return results;
        } finally {
            pool.shutdownNow();
        }
    }
}
