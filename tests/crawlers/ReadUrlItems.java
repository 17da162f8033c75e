import com.google.protobuf.util.JsonFormat;
import crawlercommons.urlfrontier.Urlfrontier.KnownURLItem;
import crawlercommons.urlfrontier.Urlfrontier.URLItem;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** Reads lines of JSON into URL Frontier's own messages, and prints date, key, rank and URL of each, tab-separated. */
class ReadUrlItems {
    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line : Files.readAllLines(Path.of(arguments[0]))) {
            URLItem.Builder item = URLItem.newBuilder();
            JsonFormat.parser().merge(line, item);
            KnownURLItem known = item.build().getKnown();
            out.println(String.join("\t",
                    Long.toString(known.getRefetchableFromDate()),
                    known.getInfo().getKey(),
                    known.getInfo().getMetadataOrThrow("semrank_rank").getValues(0),
                    known.getInfo().getUrl()));
        }
        out.flush();
    }
}
