import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.common.message.Message;

/** Sends messages with RocketMQ's Java client: NAMESERVER [TOPIC COUNT BATCH PADDING ZLIB|LZ4|ZSTD]...; BATCH 1: one by one, else as lists. */
public class Produce {
    public static void main(String[] a) throws Exception {
        for (int i = 1; i < a.length; i += 5) {
            send("rsetl-java-" + i, a[0], a[i], Integer.parseInt(a[i + 1]), Integer.parseInt(a[i + 2]), "x".repeat(Integer.parseInt(a[i + 3])), a[i + 4]);
        }
    }

    static void send(String group, String server, String topic, int n, int batch, String padding, String compression) throws Exception {
        DefaultMQProducer p = new DefaultMQProducer(group);
        p.setNamesrvAddr(server);
        p.setSendMsgTimeout(10000);
        p.setCompressType(CompressionType.of(compression));
        p.start();
        for (int i = 0; i < n; i += batch) {
            List<Message> list = new ArrayList<>();
            for (int j = i; j < Math.min(n, i + batch); j++) {
                Message m = new Message(topic, "a", "k" + j, ("java " + j + " " + padding).getBytes(StandardCharsets.UTF_8));
                m.putUserProperty("n", Integer.toString(j));
                list.add(m);
            }
            SendStatus s = (batch == 1 ? p.send(list.get(0)) : p.send(list)).getSendStatus();
            if (s != SendStatus.SEND_OK) throw new Exception(s.toString());
        }
        p.shutdown();
    }
}
