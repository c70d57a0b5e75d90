import java.util.*;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;

/** Counts the words of the topic "text" into the topic "counts"; runs until it is told to stop on its standard input. */
public class WordCount {
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "word-count");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[1]);
        boolean once = arguments.length > 2;
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, once ? arguments[2] : StreamsConfig.AT_LEAST_ONCE);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 200);
        properties.put("auto.offset.reset", "earliest");
        if (once) {
            // Every count leaves, not only the last of an interval: one that is missing or comes twice is seen.
            properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
            properties.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 10000);
            properties.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream("text")
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word)
            .count(Materialized.as("totals"))
            .toStream()
            .to("counts", Produced.with(Serdes.String(), Serdes.Long()));
        KafkaStreams streams = new KafkaStreams(builder.build(), properties);
        streams.start();
        System.in.read();
        streams.close();
    }
}
