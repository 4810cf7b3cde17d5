import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.Future;

import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Apache Kafka's tools and small client scenarios inside one JVM, for the test suites (see java.py).
 *
 * One JSON object a line on standard input, one answer a line on standard output, in order:
 *   {"tool": CLASS, "args": [...], "stdin": TEXT}  -> {"exit": CODE, "stdout": TEXT, "stderr": TEXT}
 *   {"client": ACTION, ...}                        -> {"result": ...} or {"error": STACK TRACE}
 */
public class KafkaWorker {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** What a tool's call to exit becomes, so that the JVM lives on. */
    private static final class ExitCalled extends RuntimeException {
        private static volatile Integer firstCode;

        private ExitCalled(int code) {
            super("exit " + code, null, false, false);
            if (firstCode == null) {
                firstCode = code;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        PrintStream answers = System.out;
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        // From here on standard output belongs to the answers; what a tool's thread prints late goes to standard error.
        System.setOut(System.err);
        Exit.setExitProcedure((code, message) -> {
            throw new ExitCalled(code);
        });
        Exit.setHaltProcedure((code, message) -> {
            throw new ExitCalled(code);
        });
        Exit.setShutdownHookAdder((name, runnable) -> { });
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            JsonNode question = JSON.readTree(line);
            ObjectNode answer = question.has("tool") ? runTool(question) : runClient(question);
            answers.println(JSON.writeValueAsString(answer));
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    private static ObjectNode runTool(JsonNode question) {
        List<String> arguments = new ArrayList<>();
        question.get("args").forEach(argument -> arguments.add(argument.asText()));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        ByteArrayOutputStream err = new ByteArrayOutputStream();
        PrintStream oldOut = System.out;
        PrintStream oldErr = System.err;
        java.io.InputStream oldIn = System.in;
        int code = 0;
        ExitCalled.firstCode = null;
        try {
            System.setIn(new ByteArrayInputStream(question.get("stdin").asText().getBytes(StandardCharsets.UTF_8)));
            System.setOut(new PrintStream(out, true, StandardCharsets.UTF_8));
            System.setErr(new PrintStream(err, true, StandardCharsets.UTF_8));
            Class.forName(question.get("tool").asText()).getMethod("main", String[].class)
                .invoke(null, (Object) arguments.toArray(new String[0]));
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof ExitCalled)) {
                e.getCause().printStackTrace(System.err);
                code = 1;
            }
        } catch (ReflectiveOperationException e) {
            e.printStackTrace(System.err);
            code = 1;
        } finally {
            System.out.flush();
            System.err.flush();
            System.setIn(oldIn);
            System.setOut(oldOut);
            System.setErr(oldErr);
        }
        if (ExitCalled.firstCode != null) {
            code = ExitCalled.firstCode;
        }
        return JSON.createObjectNode().put("exit", code)
            .put("stdout", out.toString(StandardCharsets.UTF_8))
            .put("stderr", err.toString(StandardCharsets.UTF_8));
    }

    private static ObjectNode runClient(JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            switch (question.get("client").asText()) {
                case "produce":
                    answer.set("result", produce(question));
                    break;
                case "consume":
                    answer.set("result", consume(question));
                    break;
                case "rebalance":
                    answer.set("result", rebalance(question));
                    break;
                case "transactions":
                    answer.set("result", transactions(question));
                    break;
                case "copy":
                    answer.set("result", copyInTransactions(question));
                    break;
                default:
                    answer.put("error", "unknown action");
            }
        } catch (Throwable failure) {
            StringWriter text = new StringWriter();
            failure.printStackTrace(new PrintWriter(text));
            answer.put("error", text.toString());
        }
        return answer;
    }

    private static Properties settings(JsonNode question) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", question.get("bootstrap").asText());
        if (question.has("config")) {
            question.get("config").properties().forEach(e -> settings.put(e.getKey(), e.getValue().asText()));
        }
        return settings;
    }

    private static KafkaProducer<String, String> producer(JsonNode question) {
        return new KafkaProducer<>(settings(question), new StringSerializer(), new StringSerializer());
    }

    private static KafkaConsumer<String, String> consumer(JsonNode question) {
        Properties settings = settings(question);
        settings.putIfAbsent("auto.offset.reset", "earliest");
        return new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
    }

    private static String text(JsonNode node) {
        return node == null || node.isNull() ? null : node.asText();
    }

    /** Sends every record of "records" (key, value, headers, timestamp) and returns their offsets. */
    private static JsonNode produce(JsonNode question) throws Exception {
        ArrayNode offsets = JSON.createArrayNode();
        try (KafkaProducer<String, String> producer = producer(question)) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : question.get("records")) {
                Integer partition = record.has("partition") ? record.get("partition").asInt() : null;
                Long timestamp = record.has("timestamp") ? record.get("timestamp").asLong() : null;
                ProducerRecord<String, String> one = new ProducerRecord<>(
                    question.get("topic").asText(), partition, timestamp, text(record.get("key")), text(record.get("value")));
                if (record.has("headers")) {
                    for (JsonNode header : record.get("headers")) {
                        one.headers().add(header.get(0).asText(), header.get(1).asText().getBytes(StandardCharsets.UTF_8));
                    }
                }
                sent.add(producer.send(one));
            }
            for (Future<RecordMetadata> one : sent) {
                offsets.add(one.get().offset());
            }
        }
        return offsets;
    }

    private static JsonNode describe(ConsumerRecord<String, String> record) {
        ObjectNode found = JSON.createObjectNode();
        found.put("partition", record.partition()).put("offset", record.offset());
        found.put("key", record.key()).put("value", record.value());
        found.put("timestamp", record.timestamp()).put("timestamp_type", record.timestampType().toString());
        ArrayNode headers = found.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(new String(header.value(), StandardCharsets.UTF_8));
        }
        return found;
    }

    /** Reads "count" records of partition 0 from the beginning, or those of a group if the settings name one. */
    private static JsonNode consume(JsonNode question) {
        ArrayNode found = JSON.createArrayNode();
        int count = question.get("count").asInt();
        String topic = question.get("topic").asText();
        try (KafkaConsumer<String, String> consumer = consumer(question)) {
            if (settings(question).containsKey("group.id")) {
                consumer.subscribe(List.of(topic));
            } else {
                consumer.assign(List.of(new TopicPartition(topic, 0)));
                consumer.seekToBeginning(consumer.assignment());
            }
            long deadline = System.currentTimeMillis() + 20_000;
            while (found.size() < count && System.currentTimeMillis() < deadline) {
                consumer.poll(Duration.ofMillis(200)).forEach(record -> found.add(describe(record)));
            }
            if (settings(question).containsKey("group.id")) {
                consumer.commitSync();
            }
        }
        return found;
    }

    /** Two consumers of one group: returns what each owned alone, together, and after the second one left. */
    private static JsonNode rebalance(JsonNode question) {
        String topic = question.get("topic").asText();
        int partitions = question.get("partitions").asInt();
        ObjectNode result = JSON.createObjectNode();
        try (KafkaConsumer<String, String> first = consumer(question)) {
            first.subscribe(List.of(topic));
            pollUntil(List.of(first), () -> first.assignment().size() == partitions);
            result.set("alone", owned(first));
            try (KafkaConsumer<String, String> second = consumer(question)) {
                second.subscribe(List.of(topic));
                pollUntil(List.of(first, second), () ->
                    first.assignment().size() == partitions / 2 && second.assignment().size() == partitions / 2);
                result.set("first", owned(first));
                result.set("second", owned(second));
            }
            pollUntil(List.of(first), () -> first.assignment().size() == partitions);
            result.set("again", owned(first));
        }
        return result;
    }

    private static ArrayNode owned(KafkaConsumer<String, String> consumer) {
        Set<Integer> numbers = new TreeSet<>();
        consumer.assignment().forEach(partition -> numbers.add(partition.partition()));
        ArrayNode list = JSON.createArrayNode();
        numbers.forEach(list::add);
        return list;
    }

    private static void pollUntil(List<KafkaConsumer<String, String>> consumers, java.util.function.BooleanSupplier done) {
        long deadline = System.currentTimeMillis() + 30_000;
        while (!done.getAsBoolean()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("the group did not settle");
            }
            consumers.forEach(consumer -> consumer.poll(Duration.ofMillis(50)));
        }
    }

    /** One transaction of "values" for each entry of "transactions"; those marked "abort" are aborted. */
    private static JsonNode transactions(JsonNode question) throws Exception {
        try (KafkaProducer<String, String> producer = producer(question)) {
            producer.initTransactions();
            for (JsonNode transaction : question.get("transactions")) {
                producer.beginTransaction();
                for (JsonNode value : transaction.get("values")) {
                    producer.send(new ProducerRecord<>(question.get("topic").asText(), 0, "k", value.asText()));
                }
                producer.flush();
                if (transaction.get("abort").asBoolean()) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
        return JSON.getNodeFactory().booleanNode(true);
    }

    /** Reads "count" records from "topic" and writes them upper-case to "target", offsets and all in one transaction. */
    private static JsonNode copyInTransactions(JsonNode question) {
        String group = question.get("group").asText();
        ObjectNode reading = question.deepCopy();
        reading.set("config", JSON.createObjectNode().put("group.id", group).put("enable.auto.commit", "false"));
        int copied = 0;
        try (KafkaConsumer<String, String> consumer = consumer(reading);
             KafkaProducer<String, String> producer = producer(question)) {
            producer.initTransactions();
            consumer.subscribe(List.of(question.get("topic").asText()));
            long deadline = System.currentTimeMillis() + 20_000;
            while (copied < question.get("count").asInt() && System.currentTimeMillis() < deadline) {
                Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
                var records = consumer.poll(Duration.ofMillis(200));
                if (records.isEmpty()) {
                    continue;
                }
                producer.beginTransaction();
                for (ConsumerRecord<String, String> record : records) {
                    producer.send(new ProducerRecord<>(question.get("target").asText(), record.key(), record.value().toUpperCase()));
                    offsets.put(new TopicPartition(record.topic(), record.partition()), new OffsetAndMetadata(record.offset() + 1));
                    copied++;
                }
                producer.sendOffsetsToTransaction(offsets, consumer.groupMetadata());
                producer.commitTransaction();
            }
        }
        return JSON.getNodeFactory().numberNode(copied);
    }
}
