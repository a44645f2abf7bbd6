// java Verify.java SECRET TIMESTAMP SIGNATURE [NOW] < body
import static java.nio.charset.StandardCharsets.UTF_8;

import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.HexFormat;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

public class Verify {
    /** Is this delivery from Callboard, and fresh? {@code body}: the raw request body; {@code now}: Unix seconds. */
    public static boolean verify(String secret, String timestamp, String signature, byte[] body, long now)
            throws GeneralSecurityException {
        if (!timestamp.matches("[0-9]{1,12}") || Math.abs(now - Long.parseLong(timestamp)) > 300) {
            return false;
        }
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(secret.getBytes(UTF_8), "HmacSHA256"));
        mac.update((timestamp + ".").getBytes(UTF_8));
        String expected = "sha256=" + HexFormat.of().formatHex(mac.doFinal(body));
        return MessageDigest.isEqual(expected.getBytes(UTF_8), signature.getBytes(UTF_8));
    }

    public static void main(String[] args) throws Exception {
        long now = args.length > 3 ? Long.parseLong(args[3]) : Instant.now().getEpochSecond();
        boolean good = verify(args[0], args[1], args[2], System.in.readAllBytes(), now);
        System.out.println(good ? "verified" : "refused");
        System.exit(good ? 0 : 1);
    }
}
