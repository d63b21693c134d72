import { WrongUsage } from '../core/index.ts'
import { foldHeaderName } from './headers.ts'

/** A pattern of alternatives that are written with white space between them. */
const anyOf = (words: string): string => `(?:${words.trim().split(/\s+/).join('|')})`

/**
 * Parts of names by which proxies, gateways and identity providers state a user, or another request, to what is behind
 * them. They count anywhere in the folded name, so that unlisted names (`X-Corp-User-Id`) are covered too.
 */
const parts: Readonly<Record<string, string>> = {
  who: `
    user mail login logon principal identit subject account person nickname impersonat behalf sudo eppn affiliation
    universalid samaccount distinguished (?:display|given|first|last|full|family|sur|screen|common)-?name
    caller request[eo]r employee staff customer department proxied spiffe svid msisdn imsi calling-?line
    (?:^|-)(?:actor|member|client-?id|sub|oid)(?:-|$)`,
  rights: `
    group role(?:s|-|$) entitle privilege permission admin tenant org-?id consumer delegat member-?of
    (?:^|-)(?:scopes?|perms|rights)(?:-|$)`,
  proof: `
    auth credential assertion claim jwt saml oidc openid shib kerberos krb5 spnego ntlm ldap x509 xfcc bearer
    (?:access|id|refresh)-?token cert(?:s|ific|-|$) (?:^|-)(?:ssl|m?tls|sso|cas|dn|upn|idp)(?:-|$)`,
  origin: `
    forward override remoteuser (?:^|-)(?:remote|istio|original|rewrite|real-?ip|socket-?ip)
    (?:client|connecting|originating|source|peer|cluster|visitor)-?(?:ip|addr|host|dn|verify|cn|cert) -ip(?:-?addr.*)?$
    script-?name path-?info (?:request|lambda)-context apigateway-(?:event|context) sendfile accel-`,
  products: `
    tailscale vouch pomerium teleport keycloak okta zscaler twingate netbird`,
}
const statesIdentity = new RegExp(Object.values(parts).map(anyOf).join('|'))

/** Whole names, and beginnings of names that belong to one product. CGI programs take `Proxy` for HTTP_PROXY. */
const isNamed = new RegExp(
  `^${anyOf(`
    proxy uid x-uid cn sn ou gap-signature persistent-id targeted-id x-act-as x-run-?as x-host x-http-.* x-custom-ip.*
    x-grafana-id x-middleware-.* x-invoke-.* x-matched-path
    iv-.* sm-.* oam-.* osso-.* x-goog-.* x-envoy-.* x-appengine-.* x-ms-token-.* x-iap-.* cf-access-.* cf-worker`)}$`,
)

/** Names that look like the ones above and are not: needed by browsers and applications, or set by us. */
const harmless: ReadonlySet<string> = new Set([
  'user-agent',
  'x-user-agent', // gRPC-Web
  'sec-fetch-user',
  'x-grafana-org-id', // by which a user of Grafana chooses among their own organizations
  'x-prometheus-remote-read-version',
  'x-prometheus-remote-write-version',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-forwarded-uri',
  'access-control-request-headers',
  'access-control-request-method',
])

/** Headers of Kubernetes, of this product and of the connection: no add-on can declare that it needs them from clients. */
const sealed = new RegExp(
  `^${anyOf(`
    authorization authentication x-authorization impersonate.* x-remote.* x-authenticated.* x-forwarded.* forwarded
    sallyport.* audit-id sec-websocket.* cookie host proxy.* connection content-length expect http2-settings keep-alive
    te trailer transfer-encoding upgrade`)}$`,
)

/**
 * The names of headers that an add-on declares, in lower case.
 *
 * @throws WrongUsage for what is no name, and for headers that are stated by Kubernetes or by us alone.
 */
export function allowedHeaders(names: readonly string[]): ReadonlySet<string> {
  for (const name of names) {
    if (!/^[A-Za-z0-9][A-Za-z0-9-]*$/.test(name))
      throw new WrongUsage(`cannot allow ${JSON.stringify(name)}: it is not the name of a header`)
    if (sealed.test(foldHeaderName(name)))
      throw new WrongUsage(
        `cannot allow the header ${name}: it states an identity of Kubernetes or Sallyport, or frames a request`,
      )
  }
  return new Set(names.map((name) => name.toLowerCase()))
}

/**
 * Whether a request header could make the system behind us believe in an identity, another client, method or path, in
 * any spelling. `allowed` has the names, in lower case, that the add-on has declared; other spellings of them count.
 */
export function isIdentityHeader(name: string, allowed?: ReadonlySet<string>): boolean {
  const lower = name.toLowerCase()
  const folded = foldHeaderName(lower).replaceAll(/^-+|-+$|-(?=-)/g, '')
  if (allowed?.has(lower) && !sealed.test(folded)) return false
  return !harmless.has(lower) && (statesIdentity.test(folded) || isNamed.test(folded))
}

const maxKnownNames = 1_000
const maxKnownLength = 64

/** Computes something from a header name once per spelling: clients send the same few names. */
export function rememberByName<T>(of: (name: string) => T): (name: string) => T {
  const known = new Map<string, T>()
  return (name) => {
    const found = known.get(name)
    if (found !== undefined) return found
    const value = of(name)
    // A client that sends thousands of names must not fill the memory.
    if (known.size >= maxKnownNames) known.clear()
    if (name.length <= maxKnownLength) known.set(name, value)
    return value
  }
}
