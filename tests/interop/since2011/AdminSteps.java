import java.util.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.ConfigResource.Type;

/** An administrator with Kafka's own AdminClient; prints one line for each thing seen, errors by their names. */
public class AdminSteps {
    static String failing(KafkaFuture<?> future) throws Exception {
        try {
            future.get();
            return "nothing";
        } catch (java.util.concurrent.ExecutionException error) {
            return error.getCause().getClass().getSimpleName();
        }
    }

    static AlterConfigOp op(String name, String value, AlterConfigOp.OpType type) {
        return new AlterConfigOp(new ConfigEntry(name, value), type);
    }

    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", arguments[0]);
        try (AdminClient admin = AdminClient.create(properties)) {
            NewTopic wanted = new NewTopic("java", 2, (short) 1).configs(Map.of("retention.ms", "5000"));
            CreateTopicsResult made = admin.createTopics(List.of(wanted));
            made.all().get();
            System.out.println("partitions " + made.numPartitions("java").get());
            System.out.println("retention " + made.config("java").get().get("retention.ms").value());
            Uuid id = made.topicId("java").get();
            TopicDescription described = admin.describeTopics(TopicCollection.ofTopicIds(List.of(id)))
                .allTopicIds().get().get(id);
            System.out.println("by id " + described.name() + " leader " + described.partitions().get(1).leader().id());
            System.out.println("again " + failing(admin.createTopics(List.of(wanted)).all()));
            System.out.println("replicas " + failing(admin.createTopics(List.of(new NewTopic("r", 1, (short) 2))).all()));
            System.out.println("name " + failing(admin.createTopics(List.of(new NewTopic("a b", 1, (short) 1))).all()));
            System.out.println("dry " + failing(admin.createTopics(List.of(new NewTopic("dry", 1, (short) 1)),
                new CreateTopicsOptions().validateOnly(true)).all()));
            admin.createPartitions(Map.of("java", NewPartitions.increaseTo(4))).all().get();
            System.out.println("shrunk " + failing(admin.createPartitions(Map.of("java", NewPartitions.increaseTo(3))).all()));
            ConfigResource topic = new ConfigResource(Type.TOPIC, "java");
            admin.incrementalAlterConfigs(Map.of(topic, List.of(
                op("cleanup.policy", "compact", AlterConfigOp.OpType.APPEND),
                op("retention.ms", null, AlterConfigOp.OpType.DELETE)))).all().get();
            Config config = admin.describeConfigs(List.of(topic)).all().get().get(topic);
            ConfigEntry policy = config.get("cleanup.policy"), retention = config.get("retention.ms");
            System.out.println("policy " + policy.value() + " " + policy.source());
            System.out.println("retention " + retention.value() + " " + retention.source() + " " + retention.type());
            System.out.println("bad value " + failing(admin.incrementalAlterConfigs(Map.of(topic, List.of(
                op("segment.bytes", "x", AlterConfigOp.OpType.SET)))).all()));
            System.out.println("acls " + failing(admin.describeAcls(
                org.apache.kafka.common.acl.AclBindingFilter.ANY).values()));
            System.out.println("reassignments " + admin.listPartitionReassignments().reassignments().get().size());
            System.out.println("quotas " + admin.describeClientQuotas(
                org.apache.kafka.common.quota.ClientQuotaFilter.all()).entities().get().size());
            System.out.println("brokers " + admin.describeCluster().nodes().get().size());
            System.out.println("topics " + admin.describeTopics(List.of("java")).allTopicNames().get()
                .get("java").partitions().size());
            admin.deleteTopics(TopicCollection.ofTopicIds(List.of(id))).all().get();
            System.out.println("left " + admin.listTopics().names().get());
            System.out.println("gone " + failing(admin.deleteTopics(List.of("java")).all()));
        }
    }
}
