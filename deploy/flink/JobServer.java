/**
 * Beam's job server for a Flink that has Beam on its class path.
 *
 * <p>Beam's own uploads its whole class path, 150 MB, with every job: 15 to 20 seconds, and three copies on the disk of
 * which none is used. It takes what the property names for its class path; the classes themselves are loaded already.
 */
public final class JobServer {
    public static void main(String[] arguments) throws Exception {
        System.setProperty("java.class.path", "no-jars-to-stage");
        org.apache.beam.runners.flink.FlinkJobServerDriver.main(arguments);
    }
}
