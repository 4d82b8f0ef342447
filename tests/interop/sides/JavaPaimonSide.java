// Java Paimon as a peer. Compiled at run time by Janino, which Spark ships: no lambdas, few generics.
// Rows are JSON arrays; tests/interop/value_form.py (to_wire) describes the values.

import java.util.*;

import org.apache.paimon.Snapshot;
import org.apache.paimon.compression.CompressOptions;
import org.apache.paimon.consumer.Consumer;
import org.apache.paimon.consumer.ConsumerManager;
import org.apache.paimon.data.*;
import org.apache.paimon.data.serializer.*;
import org.apache.paimon.disk.IOManager;
import org.apache.paimon.fs.Path;
import org.apache.paimon.fs.local.LocalFileIO;
import org.apache.paimon.index.HashBucketAssigner;
import org.apache.paimon.io.cache.CacheManager;
import org.apache.paimon.lookup.*;
import org.apache.paimon.lookup.sort.*;
import org.apache.paimon.options.MemorySize;
import org.apache.paimon.manifest.ManifestList;
import org.apache.paimon.operation.FileStoreCommitImpl;
import org.apache.paimon.predicate.Predicate;
import org.apache.paimon.predicate.PredicateBuilder;
import org.apache.paimon.reader.RecordReader;
import org.apache.paimon.reader.RecordReaderIterator;
import org.apache.paimon.schema.*;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.*;
import org.apache.paimon.shade.jackson2.com.fasterxml.jackson.databind.node.*;
import org.apache.paimon.table.*;
import org.apache.paimon.table.sink.*;
import org.apache.paimon.table.source.*;
import org.apache.paimon.table.source.snapshot.*;
import org.apache.paimon.table.system.*;
import org.apache.paimon.types.*;
import org.apache.paimon.utils.BloomFilter;

public class JavaPaimonSide {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final java.math.BigInteger MILLION = java.math.BigInteger.valueOf(1000000L);

    // A path may end with "$branch_name", or for a read with "$tag_name".
    private FileStoreTable table(String path) throws Exception {
        int tag = path.indexOf("$tag_");
        if (tag >= 0) {
            return table(path.substring(0, tag)).copy(java.util.Collections.singletonMap("scan.tag-name", path.substring(tag + 5)));
        }
        int mark = path.indexOf("$branch_");
        String root = mark < 0 ? path : path.substring(0, mark);
        FileStoreTable table = FileStoreTableFactory.create(LocalFileIO.create(), new Path(root));
        return mark < 0 ? table : table.switchToBranch(path.substring(mark + 8));
    }

    // verb: create (of a tag, unless that is empty), forward, delete.
    public void branch(String path, String verb, String name, String tag) throws Exception {
        FileStoreTable table = table(path);
        if (verb.equals("delete")) {
            table.deleteBranch(name);
        } else if (verb.equals("forward")) {
            table.fastForward(name);
        } else if (tag.isEmpty()) {
            table.createBranch(name);
        } else {
            table.createBranch(name, tag);
        }
    }

    // verb: create (a tag of a snapshot, living so many seconds unless that is 0), delete, rollback (to a tag, or to the
    // snapshot of a number where the name is empty), consume (a consumer reads the snapshot of a number next), manifests
    // (compacts them), replace (the manifest lists by lists of the same manifests).
    public void version(String path, String verb, String name, long number, long seconds) throws Exception {
        FileStoreTable table = table(path);
        if (verb.equals("manifests")) {
            BatchTableCommit commit = table.newBatchWriteBuilder().newCommit();
            commit.compactManifests();
            commit.close();
        } else if (verb.equals("replace")) {
            Snapshot latest = table.snapshotManager().latestSnapshot();
            ManifestList lists = table.store().manifestListFactory().create();
            org.apache.paimon.utils.Pair base = lists.write(lists.readDataManifests(latest));
            org.apache.paimon.utils.Pair delta = lists.write(new ArrayList());
            FileStoreCommitImpl commit = (FileStoreCommitImpl) table.store().newCommit("replacer", table);
            commit.replaceManifestList(latest, latest.totalRecordCount(), base, delta);
        } else if (verb.equals("delete")) {
            table.deleteTag(name);
        } else if (verb.equals("consume")) {
            Consumer consumer = new Consumer(number);
            new ConsumerManager(LocalFileIO.create(), new Path(path)).resetConsumer(name, consumer);
        } else if (verb.equals("rollback")) {
            if (name.isEmpty()) {
                table.rollbackTo(number);
            } else {
                table.rollbackTo(name);
            }
        } else if (seconds > 0) {
            table.createTag(name, number, java.time.Duration.ofSeconds(seconds));
        } else {
            table.createTag(name, number);
        }
    }

    private FileStoreTable table(String path, JsonNode options) throws Exception {
        return table(path).copy(map(options));
    }

    public void create(String path, String schema) throws Exception {
        JsonNode node = JSON.readTree(schema);
        Schema.Builder schemaBuilder = Schema.newBuilder();
        for (int i = 0; i < at(node, "fields").size(); i++) {
            DataField field = DataTypeJsonParser.parseDataField(at(at(node, "fields"), i));
            schemaBuilder.column(field.name(), field.type());
        }
        schemaBuilder.partitionKeys(texts(at(node, "partitionKeys"))).primaryKey(texts(at(node, "primaryKeys")));
        schemaBuilder.options(map(at(node, "options")));
        new SchemaManager(LocalFileIO.create(), new Path(path)).createTable(schemaBuilder.build());
    }

    // Janino takes the bridge methods that return a TreeNode, hence the casts.
    private static JsonNode at(JsonNode node, int i) {
        return (JsonNode) node.get(i);
    }

    private static JsonNode at(JsonNode node, String name) {
        return (JsonNode) node.get(name);
    }

    private List texts(JsonNode node) {
        List result = new ArrayList();
        for (int i = 0; i < node.size(); i++) result.add(at(node, i).asText());
        return result;
    }

    private Map map(JsonNode node) {
        Map result = new HashMap();
        Iterator names = node.fieldNames();
        while (names.hasNext()) {
            String name = (String) names.next();
            result.put(name, at(node, name).asText());
        }
        return result;
    }

    // changes: [verb, path of the column, new name or type as in a schema file], ...
    public void alter(String path, String changes) throws Exception {
        JsonNode node = JSON.readTree(changes);
        List made = new ArrayList();
        for (int i = 0; i < node.size(); i++) {
            String verb = at(at(node, i), 0).asText();
            String[] column = (String[]) texts(at(at(node, i), 1)).toArray(new String[0]);
            if (verb.equals("drop")) {
                made.add(SchemaChange.dropColumn(column));
            } else if (verb.equals("rename")) {
                made.add(SchemaChange.renameColumn(column, at(at(node, i), 2).asText()));
            } else {
                DataType type = DataTypeJsonParser.parseDataType(at(at(node, i), 2));
                made.add(verb.equals("add") ? SchemaChange.addColumn(column, type, null, null)
                                            : SchemaChange.updateColumnType(column, type, true));
            }
        }
        new SchemaManager(LocalFileIO.create(), new Path(path)).commitChanges(made);
    }

    // Commits one batch after the other by one writer. batches: [[kinds, rows], ...]; options hold for this call;
    // full: each commit ends in a full compaction of the buckets that it wrote.
    public void write(String path, String batches, String options, boolean full) throws Exception {
        write(table(path, JSON.readTree(options)), batches, full, null);
    }

    // Replaces a partition, or those that the rows have, by one batch. partition: {column: text}.
    public void overwrite(String path, String batches, String partition, String options) throws Exception {
        write(table(path, JSON.readTree(options)), batches, false, map(JSON.readTree(partition)));
    }

    private void write(FileStoreTable table, String batches, boolean full, Map overwritten) throws Exception {
        JsonNode batchNodes = JSON.readTree(batches);
        String user = UUID.randomUUID().toString();
        boolean dynamic = table.bucketMode() == BucketMode.HASH_DYNAMIC;
        HashBucketAssigner assigner = null;
        if (dynamic) {
            assigner = new HashBucketAssigner(
                table.snapshotManager(), user, table.store().newIndexFileHandler(), 1, 1, 0,
                table.coreOptions().dynamicBucketTargetRowNum(), table.coreOptions().dynamicBucketMaxBuckets());
        }
        RowPartitionKeyExtractor extractor = new RowPartitionKeyExtractor(table.schema());
        TableWriteImpl writer = table.newWrite(user);
        writer.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
        TableCommitImpl commit = table.newCommit(user);
        if (overwritten != null) {
            writer.withIgnorePreviousFiles(true);
            commit.withOverwrite(overwritten);
        }
        try {
            for (int batch = 0; batch < batchNodes.size(); batch++) {
                JsonNode kindNodes = at(at(batchNodes, batch), 0);
                JsonNode rowNodes = at(at(batchNodes, batch), 1);
                Map written = new LinkedHashMap();
                for (int i = 0; i < rowNodes.size(); i++) {
                    GenericRow row = row(at(rowNodes, i), table.rowType());
                    row.setRowKind(RowKind.fromByteValue((byte) at(kindNodes, i).asInt()));
                    BinaryRow partition = extractor.partition((InternalRow) row).copy();
                    int bucket = dynamic
                        ? assigner.assign(partition, extractor.trimmedPrimaryKey((InternalRow) row).hashCode())
                        : writer.getBucket((InternalRow) row);
                    writer.write((InternalRow) row, bucket);
                    written.put(Arrays.asList(new Object[] {partition, Integer.valueOf(bucket)}), "");
                }
                Iterator buckets = written.keySet().iterator();
                while (full && buckets.hasNext()) {
                    List bucket = (List) buckets.next();
                    writer.compact((BinaryRow) bucket.get(0), ((Integer) bucket.get(1)).intValue(), true);
                }
                commit.commit(batch + 1L, writer.prepareCommit(true, batch + 1L));
            }
        } finally {
            writer.close();
            commit.close();
        }
    }

    public void compact(String path, boolean full) throws Exception {
        // As a dedicated compaction does, which serves tables whose writers compact nothing.
        FileStoreTable table = table(path).copy(Collections.singletonMap("write-only", "false"));
        String user = UUID.randomUUID().toString();
        TableWriteImpl writer = table.newWrite(user);
        writer.withIOManager(IOManager.create(System.getProperty("java.io.tmpdir")));
        TableCommitImpl commit = table.newCommit(user);
        try {
            Set seen = new HashSet();
            List splits = table.newSnapshotReader().read().dataSplits();
            for (int i = 0; i < splits.size(); i++) {
                DataSplit split = (DataSplit) splits.get(i);
                if (seen.add(Arrays.asList(new Object[] {split.partition(), Integer.valueOf(split.bucket())}))) {
                    writer.compact(split.partition(), split.bucket(), full);
                }
            }
            commit.commit(1L, writer.prepareCommit(true, 1L));
        } finally {
            writer.close();
            commit.close();
        }
    }

    public String read(String path, String where) throws Exception {
        FileStoreTable table = table(path);
        RowType type = table.rowType();
        ReadBuilder builder = table.newReadBuilder();
        JsonNode condition = JSON.readTree(where);
        if (!condition.isNull()) builder.withFilter(predicate(condition, type));
        TableRead read = builder.newRead();
        if (!condition.isNull()) read.executeFilter();
        return JSON.writeValueAsString(rows(read, builder.newScan().plan().splits(), type));
    }

    private ArrayNode rows(TableRead read, List splits, RowType type) throws Exception {
        ArrayNode rows = JSON.createArrayNode();
        for (int i = 0; i < splits.size(); i++) {
            RecordReaderIterator iterator = new RecordReaderIterator(read.createReader((Split) splits.get(i)));
            while (iterator.hasNext()) {
                rows.add(array((DataGetters) iterator.next(), type));
            }
            iterator.close();
        }
        return rows;
    }

    // The rows that a batch read between two snapshots gets, [kind, value ...] each, in the order of the read.
    // mode: auto, delta, changelog, diff.
    public String changes(String path, long after, long upto, String mode) throws Exception {
        Map options = new HashMap();
        options.put("incremental-between", after + "," + upto);
        options.put("incremental-between-scan-mode", mode);
        AuditLogTable log = new AuditLogTable(table(path).copy(options));
        ReadBuilder builder = log.newReadBuilder();
        return JSON.writeValueAsString(rows(builder.newRead(), builder.newScan().plan().splits(), log.rowType()));
    }

    // What a streaming read gets that starts at a snapshot: the rows of each plan, as in changes.
    public String stream(String path, long first) throws Exception {
        AuditLogTable log = new AuditLogTable(table(path));
        ReadBuilder builder = log.newReadBuilder();
        TableRead read = builder.newRead();
        StreamTableScan scan = builder.newStreamScan();
        scan.restore(Long.valueOf(first));
        ArrayNode plans = JSON.createArrayNode();
        TableScan.Plan plan = scan.plan();
        while (!(plan instanceof SnapshotNotExistPlan)) {
            plans.add(rows(read, plan.splits(), log.rowType()));
            plan = scan.plan();
        }
        return JSON.writeValueAsString(plans);
    }

    // A system table: {"columns": [[name, type] ...], "rows": [...]}.
    public String system(String path, String name) throws Exception {
        Table table = SystemTableLoader.load(name, table(path));
        ReadBuilder builder = table.newReadBuilder();
        ArrayNode columns = JSON.createArrayNode();
        for (int i = 0; i < table.rowType().getFieldCount(); i++) {
            DataField field = (DataField) table.rowType().getFields().get(i);
            ArrayNode column = JSON.createArrayNode();
            column.add(field.name());
            column.add(field.type().asSQLString());
            columns.add(column);
        }
        ObjectNode result = JSON.createObjectNode();
        result.put("columns", columns);
        result.put("rows", rows(builder.newRead(), builder.newScan().plan().splits(), table.rowType()));
        return JSON.writeValueAsString(result);
    }

    // Lookup files. types: the fields of a row as in a schema file; form: block size, compression, error rate of the
    // bloom filter (null: none). A row is the key's values and then the others.

    private RowType rowType(JsonNode fields) throws Exception {
        List made = new ArrayList();
        for (int i = 0; i < fields.size(); i++) made.add(DataTypeJsonParser.parseDataField(at(fields, i)));
        return new RowType(made);
    }

    public String compactedRows(String types, String rows) throws Exception {
        RowType type = rowType(JSON.readTree(types));
        RowCompactedSerializer serializer = new RowCompactedSerializer(type);
        JsonNode nodes = JSON.readTree(rows);
        ArrayNode result = JSON.createArrayNode();
        for (int i = 0; i < nodes.size(); i++) {
            result.add(hex(serializer.serializeToBytes((InternalRow) row(at(nodes, i), type))));
        }
        return JSON.writeValueAsString(result);
    }

    private LookupStoreFactory lookupStores(RowType key, JsonNode form) {
        return new SortLookupStoreFactory(
            new RowCompactedSerializer(key).createSliceComparator(), new CacheManager(MemorySize.ofMebiBytes(4)),
            at(form, 0).asInt(), new CompressOptions(at(form, 1).asText(), 1));
    }

    public void writeLookupFile(String file, String keyTypes, String valueTypes, String rows, String form)
            throws Exception {
        RowType key = rowType(JSON.readTree(keyTypes));
        RowType value = rowType(JSON.readTree(valueTypes));
        JsonNode nodes = JSON.readTree(rows);
        JsonNode fpp = at(JSON.readTree(form), 2);
        BloomFilter.Builder bloom = fpp.isNull() ? null : BloomFilter.builder((long) nodes.size(), fpp.asDouble());
        RowCompactedSerializer keys = new RowCompactedSerializer(key);
        RowCompactedSerializer values = new RowCompactedSerializer(value);
        LookupStoreWriter writer = lookupStores(key, JSON.readTree(form)).createWriter(new java.io.File(file), bloom);
        for (int i = 0; i < nodes.size(); i++) {
            writer.put(
                keys.serializeToBytes((InternalRow) row(at(at(nodes, i), 0), key)),
                values.serializeToBytes((InternalRow) row(at(at(nodes, i), 1), value)));
        }
        writer.close();
    }

    public String readLookupFile(String file, String keyTypes, String valueTypes, String asked, String form)
            throws Exception {
        RowType key = rowType(JSON.readTree(keyTypes));
        RowType value = rowType(JSON.readTree(valueTypes));
        RowCompactedSerializer keys = new RowCompactedSerializer(key);
        RowCompactedSerializer values = new RowCompactedSerializer(value);
        LookupStoreReader reader = lookupStores(key, JSON.readTree(form)).createReader(new java.io.File(file));
        JsonNode nodes = JSON.readTree(asked);
        ArrayNode result = JSON.createArrayNode();
        for (int i = 0; i < nodes.size(); i++) {
            byte[] found = reader.lookup(keys.serializeToBytes((InternalRow) row(at(nodes, i), key)));
            if (found == null) {
                result.addNull();
            } else {
                result.add(array((DataGetters) values.deserialize(found), value));
            }
        }
        reader.close();
        return JSON.writeValueAsString(result);
    }

    // Answers many conditions [method, column, operand ...]. Each answer: the files that the plan has, the ids of the rows
    // that a read gets which filters by files and row groups alone, and those of them for which the condition is true.
    public String ask(String path, String questions) throws Exception {
        FileStoreTable table = table(path);
        RowType type = table.rowType();
        JsonNode nodes = JSON.readTree(questions);
        ArrayNode answers = JSON.createArrayNode();
        for (int i = 0; i < nodes.size(); i++) {
            int id = type.getFieldIndex("id");
            int column = type.getFieldIndex(at(at(nodes, i), 1).asText());
            RowType shown = type.project(new int[] {id, column});
            Predicate exact = predicate(at(nodes, i), shown);
            ReadBuilder builder = table.newReadBuilder().withFilter(predicate(at(nodes, i), type));
            builder.withProjection(new int[] {id, column});
            List splits = builder.newScan().plan().splits();
            int files = 0;
            ArrayNode got = JSON.createArrayNode();
            ArrayNode matching = JSON.createArrayNode();
            TableRead read = builder.newRead();
            for (int at = 0; at < splits.size(); at++) {
                files += ((DataSplit) splits.get(at)).dataFiles().size();
                RecordReaderIterator iterator = new RecordReaderIterator(read.createReader((Split) splits.get(at)));
                while (iterator.hasNext()) {
                    InternalRow row = (InternalRow) iterator.next();
                    got.add(row.getInt(0));
                    if (exact.test(row)) matching.add(row.getInt(0));
                }
                iterator.close();
            }
            ArrayNode answer = JSON.createArrayNode();
            answer.add(files);
            answer.add(got);
            answer.add(matching);
            answers.add(answer);
        }
        return JSON.writeValueAsString(answers);
    }

    private Predicate predicate(JsonNode where, RowType type) throws Exception {
        PredicateBuilder builder = new PredicateBuilder(type);
        int at = type.getFieldIndex(at(where, 1).asText());
        List values = new ArrayList();
        for (int i = 2; i < where.size(); i++) values.add(value(at(where, i), type.getTypeAt(at)));
        Object value = values.isEmpty() ? null : values.get(0);
        String method = at(where, 0).asText();
        if (method.endsWith("in_set")) {
            // Java takes a list of more than 20 values as a set, and a shorter one as equalities.
            while (values.size() <= 20) values.add(value);
        }
        if (method.equals("is_null")) return builder.isNull(at);
        if (method.equals("is_not_null")) return builder.isNotNull(at);
        if (method.equals("equal")) return builder.equal(at, value);
        if (method.equals("not_equal")) return builder.notEqual(at, value);
        if (method.equals("less_than")) return builder.lessThan(at, value);
        if (method.equals("less_or_equal")) return builder.lessOrEqual(at, value);
        if (method.equals("greater_than")) return builder.greaterThan(at, value);
        if (method.equals("greater_or_equal")) return builder.greaterOrEqual(at, value);
        if (method.equals("between")) return builder.between(at, value, values.get(1));
        if (method.equals("in") || method.equals("in_set")) return builder.in(at, values);
        if (method.equals("not_in") || method.equals("not_in_set")) return builder.notIn(at, values);
        if (method.equals("starts_with")) return builder.startsWith(at, value);
        if (method.equals("ends_with")) return builder.endsWith(at, value);
        if (method.equals("contains")) return builder.contains(at, value);
        throw new IllegalArgumentException(method);
    }

    // -- JSON to Paimon -------------------------------------------------------------------------------------------

    private GenericRow row(JsonNode node, RowType type) throws Exception {
        GenericRow row = new GenericRow(type.getFieldCount());
        for (int i = 0; i < type.getFieldCount(); i++) row.setField(i, value(at(node, i), type.getTypeAt(i)));
        return row;
    }

    private Object value(JsonNode node, DataType type) throws Exception {
        if (node == null || node.isNull()) return null;
        String root = type.getTypeRoot().name();
        if (root.equals("BOOLEAN")) return Boolean.valueOf(node.asBoolean());
        if (root.equals("TINYINT")) return Byte.valueOf((byte) node.asInt());
        if (root.equals("SMALLINT")) return Short.valueOf((short) node.asInt());
        if (root.equals("INTEGER") || root.equals("DATE") || root.equals("TIME_WITHOUT_TIME_ZONE")) {
            return Integer.valueOf(node.asInt());
        }
        if (root.equals("BIGINT")) return Long.valueOf(node.asLong());
        if (root.equals("FLOAT")) return Float.valueOf(javaFloat(node.asText()));
        if (root.equals("DOUBLE")) return Double.valueOf(javaFloat(node.asText()));
        if (root.equals("CHAR") || root.equals("VARCHAR")) return BinaryString.fromString(node.asText());
        if (root.equals("BINARY") || root.equals("VARBINARY")) return bytes(node.asText());
        if (root.equals("DECIMAL")) {
            DecimalType decimal = (DecimalType) type;
            return Decimal.fromBigDecimal(
                new java.math.BigDecimal(node.asText()), decimal.getPrecision(), decimal.getScale());
        }
        if (root.startsWith("TIMESTAMP")) {
            java.math.BigInteger[] parts = node.bigIntegerValue().divideAndRemainder(MILLION);
            long millis = parts[0].longValue();
            int rest = parts[1].intValue();
            return rest < 0 ? Timestamp.fromEpochMillis(millis - 1, rest + 1000000)
                            : Timestamp.fromEpochMillis(millis, rest);
        }
        if (root.equals("ARRAY")) {
            Object[] values = new Object[node.size()];
            for (int i = 0; i < values.length; i++) values[i] = value(at(node, i), ((ArrayType) type).getElementType());
            return new GenericArray(values);
        }
        if (root.equals("MAP") || root.equals("MULTISET")) {
            Map map = new LinkedHashMap();
            for (int i = 0; i < node.size(); i++) {
                map.put(value(at(at(node, i), 0), keyType(type)), value(at(at(node, i), 1), valueType(type)));
            }
            return new GenericMap(map);
        }
        if (root.equals("ROW")) return row(node, (RowType) type);
        throw new IllegalArgumentException(root);
    }

    private String javaFloat(String python) {
        return python.replace("inf", "Infinity").replace("nan", "NaN");
    }

    private byte[] bytes(String hex) {
        byte[] result = new byte[(hex.length() - 4) / 2];
        for (int i = 0; i < result.length; i++) {
            result[i] = (byte) Integer.parseInt(hex.substring(4 + 2 * i, 6 + 2 * i), 16);
        }
        return result;
    }

    private DataType keyType(DataType type) {
        return type instanceof MapType ? ((MapType) type).getKeyType() : ((MultisetType) type).getElementType();
    }

    private DataType valueType(DataType type) {
        return type instanceof MapType ? ((MapType) type).getValueType() : new IntType();
    }

    // -- Paimon to JSON -------------------------------------------------------------------------------------------

    private ArrayNode array(DataGetters row, RowType type) {
        ArrayNode result = JSON.createArrayNode();
        for (int i = 0; i < type.getFieldCount(); i++) result.add(json(row, i, type.getTypeAt(i)));
        return result;
    }

    private JsonNode json(DataGetters row, int i, DataType type) {
        if (row.isNullAt(i)) return NullNode.getInstance();
        String root = type.getTypeRoot().name();
        if (root.equals("BOOLEAN")) return BooleanNode.valueOf(row.getBoolean(i));
        if (root.equals("TINYINT")) return IntNode.valueOf((int) row.getByte(i));
        if (root.equals("SMALLINT")) return IntNode.valueOf((int) row.getShort(i));
        if (root.equals("INTEGER") || root.equals("DATE") || root.equals("TIME_WITHOUT_TIME_ZONE")) {
            return IntNode.valueOf(row.getInt(i));
        }
        if (root.equals("BIGINT")) return LongNode.valueOf(row.getLong(i));
        if (root.equals("FLOAT")) return new TextNode(Float.toString(row.getFloat(i)));
        if (root.equals("DOUBLE")) return new TextNode(Double.toString(row.getDouble(i)));
        if (root.equals("CHAR") || root.equals("VARCHAR")) return new TextNode(row.getString(i).toString());
        if (root.equals("BINARY") || root.equals("VARBINARY")) return new TextNode(hex(row.getBinary(i)));
        if (root.equals("DECIMAL")) {
            DecimalType decimal = (DecimalType) type;
            Decimal value = row.getDecimal(i, decimal.getPrecision(), decimal.getScale());
            return new TextNode(value.toBigDecimal().toPlainString());
        }
        if (root.startsWith("TIMESTAMP")) {
            int precision = type instanceof TimestampType
                ? ((TimestampType) type).getPrecision() : ((LocalZonedTimestampType) type).getPrecision();
            Timestamp value = row.getTimestamp(i, precision);
            java.math.BigInteger millis = java.math.BigInteger.valueOf(value.getMillisecond());
            java.math.BigInteger rest = java.math.BigInteger.valueOf((long) value.getNanoOfMillisecond());
            return BigIntegerNode.valueOf(millis.multiply(MILLION).add(rest));
        }
        if (root.equals("ARRAY")) return list(row.getArray(i), ((ArrayType) type).getElementType());
        if (root.equals("MAP") || root.equals("MULTISET")) {
            ArrayNode keys = list(row.getMap(i).keyArray(), keyType(type));
            ArrayNode values = list(row.getMap(i).valueArray(), valueType(type));
            ArrayNode pairs = JSON.createArrayNode();
            for (int at = 0; at < keys.size(); at++) {
                ArrayNode pair = JSON.createArrayNode();
                pair.add(at(keys, at));
                pair.add(at(values, at));
                pairs.add(pair);
            }
            return pairs;
        }
        if (root.equals("ROW")) return array(row.getRow(i, ((RowType) type).getFieldCount()), (RowType) type);
        throw new IllegalArgumentException(root);
    }

    private ArrayNode list(InternalArray values, DataType type) {
        ArrayNode result = JSON.createArrayNode();
        for (int i = 0; i < values.size(); i++) result.add(json(values, i, type));
        return result;
    }

    private String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder("hex:");
        for (int i = 0; i < bytes.length; i++) text.append(String.format("%02x", new Object[] {Byte.valueOf(bytes[i])}));
        return text.toString();
    }
}
