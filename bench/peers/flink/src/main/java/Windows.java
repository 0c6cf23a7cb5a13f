import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.RichFlatMapFunction;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.connector.file.src.FileSource;
import org.apache.flink.connector.file.src.reader.TextLineInputFormat;
import org.apache.flink.core.fs.Path;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;

/** The errors of an Apache log by minute and status: number and bytes. Prints START STATUS HITS BYTES lines. */
public class Windows {
  static final String LINE =
      "^(?<host>\\S+) (?<ident>\\S+) (?<user>\\S+) \\[(?<time>[^\\]]+)\\] \"(?:(?<method>\\w+) (?<url>\\S+)(?: HTTP/(?<version>[\\d.]+))?|(?<raw>.*?))\" (?<status>\\d+) (?:(?<bytes>\\d+)|-) \"(?<referrer>[^\"]*)\" \"(?<agent>[^\"]*)\"";

  static class Parse extends RichFlatMapFunction<String, Tuple3<Long, Integer, Long>> {
    private transient Pattern pattern;
    private transient DateTimeFormatter format;

    @Override
    public void open(org.apache.flink.api.common.functions.OpenContext c) {
      pattern = Pattern.compile(LINE);
      format = DateTimeFormatter.ofPattern("dd/MMM/yyyy:HH:mm:ss Z", Locale.ENGLISH);
    }

    @Override
    public void flatMap(String line, Collector<Tuple3<Long, Integer, Long>> out) {
      Matcher m = pattern.matcher(line);
      if (!m.find()) {
        return;
      }
      int status = Integer.parseInt(m.group("status"));
      if (status < 500) {
        return;
      }
      String bytes = m.group("bytes");
      out.collect(Tuple3.of(OffsetDateTime.parse(m.group("time"), format).toInstant().toEpochMilli(), status, bytes == null ? 0 : Long.parseLong(bytes)));
    }
  }

  static class Sum implements AggregateFunction<Tuple3<Long, Integer, Long>, long[], long[]> {
    public long[] createAccumulator() { return new long[2]; }
    public long[] add(Tuple3<Long, Integer, Long> v, long[] a) { a[0]++; a[1] += v.f2; return a; }
    public long[] getResult(long[] a) { return a; }
    public long[] merge(long[] a, long[] b) { a[0] += b[0]; a[1] += b[1]; return a; }
  }

  static class Print extends ProcessWindowFunction<long[], String, Integer, TimeWindow> {
    @Override
    public void process(Integer status, Context c, Iterable<long[]> in, Collector<String> out) {
      for (long[] a : in) {
        out.collect(c.window().getStart() / 1000 + " " + status + " " + a[0] + " " + a[1]);
      }
    }
  }

  public static void main(String[] args) throws Exception {
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
    env.getConfig().enableObjectReuse();
    var source = FileSource.forRecordStreamFormat(new TextLineInputFormat(), new Path(args[0])).build();
    env.fromSource(source, WatermarkStrategy.noWatermarks(), "file")
        .flatMap(new Parse())
        .assignTimestampsAndWatermarks(
            WatermarkStrategy.<Tuple3<Long, Integer, Long>>forBoundedOutOfOrderness(Duration.ofSeconds(5)).withTimestampAssigner((v, t) -> v.f0))
        .keyBy(v -> v.f1)
        .window(TumblingEventTimeWindows.of(Duration.ofMinutes(1)))
        .aggregate(new Sum(), new Print())
        .print();
    env.execute();
  }
}
