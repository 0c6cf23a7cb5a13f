import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;

/** Sends messages with RocketMQ's Java client: NAMESERVER TOPIC COUNT BATCH PADDING; BATCH 1: one by one, else as lists. */
public class Produce {
    public static void main(String[] a) throws Exception {
        int n = Integer.parseInt(a[2]), batch = Integer.parseInt(a[3]);
        String padding = "x".repeat(Integer.parseInt(a[4]));
        DefaultMQProducer p = new DefaultMQProducer("rsetl-java");
        p.setNamesrvAddr(a[0]);
        p.setSendMsgTimeout(10000);
        p.start();
        for (int i = 0; i < n; i += batch) {
            List<Message> list = new ArrayList<>();
            for (int j = i; j < Math.min(n, i + batch); j++) {
                Message m = new Message(a[1], "a", "k" + j, ("java " + j + " " + padding).getBytes(StandardCharsets.UTF_8));
                m.putUserProperty("n", Integer.toString(j));
                list.add(m);
            }
            SendStatus s = (batch == 1 ? p.send(list.get(0)) : p.send(list)).getSendStatus();
            if (s != SendStatus.SEND_OK) throw new Exception(s.toString());
        }
        p.shutdown();
    }
}
