import com.nimbusds.jose.JWSAlgorithm;
import com.nimbusds.jose.jwk.source.JWKSource;
import com.nimbusds.jose.jwk.source.JWKSourceBuilder;
import com.nimbusds.jose.proc.JWSVerificationKeySelector;
import com.nimbusds.jose.proc.SecurityContext;
import com.nimbusds.jose.util.DefaultResourceRetriever;
import com.nimbusds.jwt.JWTClaimsSet;
import com.nimbusds.jwt.proc.DefaultJWTClaimsVerifier;
import com.nimbusds.jwt.proc.DefaultJWTProcessor;
import com.nimbusds.oauth2.sdk.http.HTTPRequest;
import com.nimbusds.oauth2.sdk.id.Issuer;
import com.nimbusds.openid.connect.sdk.op.OIDCProviderMetadata;
import java.io.BufferedReader;
import java.io.FileInputStream;
import java.io.InputStreamReader;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.HashSet;
import java.util.Set;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;
import net.minidev.json.JSONObject;

/** Reads a token per line and says of each, in a line of JSON, whether nimbus-jose-jwt believes it. */
public final class Verify {
  /** The library's own limit is half a second, which a busy machine may miss. */
  private static final int TIMEOUT_MS = 5_000;

  public static void main(String[] arguments) throws Exception {
    String issuer = arguments[0];
    String audience = arguments[1];
    SSLSocketFactory tls = trusting(arguments[2]);
    HTTPRequest.setDefaultSSLSocketFactory(tls);
    OIDCProviderMetadata metadata =
        OIDCProviderMetadata.resolve(new Issuer(issuer), TIMEOUT_MS, TIMEOUT_MS);
    DefaultResourceRetriever retriever =
        new DefaultResourceRetriever(
            TIMEOUT_MS, TIMEOUT_MS, JWKSourceBuilder.DEFAULT_HTTP_SIZE_LIMIT, true, tls);
    JWKSource<SecurityContext> keys =
        JWKSourceBuilder.create(metadata.getJWKSetURI().toURL(), retriever).build();
    Set<JWSAlgorithm> algorithms = new HashSet<>(metadata.getIDTokenJWSAlgs());
    DefaultJWTProcessor<SecurityContext> processor = new DefaultJWTProcessor<>();
    processor.setJWSKeySelector(new JWSVerificationKeySelector<>(algorithms, keys));
    processor.setJWTClaimsSetVerifier(
        new DefaultJWTClaimsVerifier<>(
            audience,
            new JWTClaimsSet.Builder().issuer(issuer).build(),
            Set.of("exp", "sub")));
    System.out.println("ready");
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    for (String token = lines.readLine(); token != null; token = lines.readLine()) {
      System.out.println(judge(processor, token));
    }
  }

  private static String judge(DefaultJWTProcessor<SecurityContext> processor, String token) {
    JSONObject answer = new JSONObject();
    try {
      JWTClaimsSet claims = processor.process(token, null);
      answer.put("ok", true);
      answer.put("sub", claims.getSubject());
    } catch (Exception refused) {
      answer.put("ok", false);
      answer.put("why", refused.getClass().getSimpleName() + ": " + refused.getMessage());
    }
    return answer.toJSONString();
  }

  private static SSLSocketFactory trusting(String ca) throws Exception {
    KeyStore roots = KeyStore.getInstance(KeyStore.getDefaultType());
    roots.load(null, null);
    try (FileInputStream pem = new FileInputStream(ca)) {
      int count = 0;
      for (Certificate root : CertificateFactory.getInstance("X.509").generateCertificates(pem)) {
        roots.setCertificateEntry("root-" + count++, root);
      }
    }
    TrustManagerFactory trust =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(roots);
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, trust.getTrustManagers(), null);
    return context.getSocketFactory();
  }
}
