import { member } from '../../jose/index.ts'
import type { IssuerInspection } from './inspect.ts'
import type { Probe, Trust } from './probe.ts'

/** Something that a relying party requires or recommends of an issuer. */
export interface Requirement {
  /** `fails`: tokens are not accepted there. `warns`: they may not be, or not for long. */
  readonly level: 'fails' | 'warns'
  /** What is wrong; undefined if nothing is. */
  readonly problem: (found: IssuerInspection) => string | undefined
  readonly todo: string
}

/** A requirement without which tokens are not accepted. */
export const must = (problem: Requirement['problem'], todo: string): Requirement => ({
  level: 'fails',
  problem,
  todo,
})

/** A recommendation. */
export const should = (problem: Requirement['problem'], todo: string): Requirement => ({
  level: 'warns',
  problem,
  todo,
})

const publish =
  'serve the documents elsewhere: `sallyport issuer publish` for a static host, or `sallyport issuer serve`'

const unreachable = ({ url, status, problem }: Probe): string | undefined =>
  status === undefined ? `${url} cannot be reached (${problem ?? 'no response'})` : undefined

/** What every relying party requires of a response. */
function responseProblem(probe: Probe): string | undefined {
  const { url, status } = probe
  if (status === undefined) return unreachable(probe)
  if (status >= 300 && status < 400)
    return `${url} redirects (${status}), which most relying parties do not follow`
  return undefined
}

const needsCredential = ({ url, status }: Probe): string | undefined =>
  status === 401 || status === 403
    ? `${url} responds with ${status} to requests with no credential`
    : undefined

const errorStatus = (probe: Probe): string | undefined => {
  const { url, status = 200 } = probe
  if (needsCredential(probe) !== undefined || status < 400) return undefined
  return `${url} responds with ${status}`
}

const probesOf = ({ discovery, jwks }: IssuerInspection): Probe[] =>
  jwks ? [discovery, jwks] : [discovery]

const first =
  (test: (probe: Probe) => string | undefined) =>
  (found: IssuerInspection): string | undefined =>
    probesOf(found)
      .map(test)
      .find((found) => found !== undefined)

const isHttps = ({ url, issuer }: IssuerInspection): string | undefined =>
  url.protocol === 'https:' ? undefined : `the issuer ${issuer} is not an https URL`

const hasQuery = ({ issuer }: IssuerInspection): string | undefined =>
  /[?#]/.test(issuer) ? 'the issuer has a query or a fragment' : undefined

const sameIssuer = ({ document, issuer }: IssuerInspection): string | undefined => {
  if (!document) return undefined
  const documentIssuer = member(document, 'issuer')
  return documentIssuer === issuer
    ? undefined
    : `issuer mismatch: the document has ${JSON.stringify(documentIssuer)}, expected ${JSON.stringify(issuer)}`
}

const isDocument = ({ discovery, document }: IssuerInspection): string | undefined =>
  discovery.status === 200 && !document
    ? `${discovery.url} is not a JSON object without duplicate members`
    : undefined

const namesKeys = ({ document, jwksUri }: IssuerInspection): string | undefined =>
  document && jwksUri === undefined ? 'the document has no jwks_uri that is a URL' : undefined

const hasKeys = ({ jwks, keys }: IssuerInspection): string | undefined =>
  jwks?.status === 200 && keys.length === 0 ? `${jwks.url} has no keys` : undefined

const showsPrivateKey = ({ keys }: IssuerInspection): string | undefined =>
  keys.some(({ isPrivate }) => isPrivate)
    ? 'a PRIVATE key is published: every reader can sign tokens'
    : undefined

const isUsable = ({ keys }: IssuerInspection): string | undefined =>
  keys.length > 0 && !keys.some((key) => key.isUsable)
    ? 'no published key is RSA of 2048 bits or more, or on P-256, P-384 or P-521'
    : undefined

/** The requirements of all relying parties. */
export const commonRequirements: readonly Requirement[] = [
  must(isHttps, 'give the issuer an https URL (--service-account-issuer)'),
  must(hasQuery, 'leave out everything from the ? or # on (--service-account-issuer)'),
  must(
    first(responseProblem),
    'serve both documents at the addresses that they name, without a redirect',
  ),
  must(
    first(needsCredential),
    'serve them without authentication with --service-account-issuer-public (elsewhere: bind system:service-account-issuer-discovery to system:unauthenticated, with anonymous requests on)',
  ),
  must(first(errorStatus), 'check the URL of the issuer and whether its server is running'),
  must(isDocument, 'serve the bytes of `sallyport issuer publish`'),
  must(
    sameIssuer,
    'use exactly the string of the document, including a trailing slash, or correct --service-account-issuer',
  ),
  must(namesKeys, 'set --service-account-jwks-uri to a URL that relying parties can reach'),
  must(hasKeys, 'publish the key set (`sallyport issuer publish`)'),
  must(
    showsPrivateKey,
    'take the document down and replace the key now (`sallyport issuer rotate --now`)',
  ),
  must(isUsable, 'sign with RSA of 2048 bits (RS256)'),
]

const notPublic = (when: readonly Trust[]) =>
  first(({ url, status, trust, problem }) =>
    status !== undefined && when.includes(trust)
      ? `the certificate of ${new URL(url).host} is not signed by a public CA (${problem ?? 'only by the given one'})`
      : undefined,
  )

/** For relying parties that accept public CAs only. */
export const publicTrust: Requirement = must(
  notPublic(['given', 'none']),
  'use a certificate of a public CA, or publish the documents on a host that has one',
)

/** For relying parties that can be configured with a CA. */
export const knownTrust = (todo: string): readonly Requirement[] => [
  must(notPublic(['none']), todo),
  should(notPublic(['given']), todo),
]

/** For relying parties that connect from the internet. */
export const publicAddress: Requirement = must(
  ({ isInside, url, addresses }) =>
    isInside ? `${url.host} has only private addresses (${addresses.join(', ')})` : undefined,
  publish,
)

/** For relying parties that find keys by `kid`. */
export const kidOnEveryKey: Requirement = must(
  ({ keys }) =>
    keys.some(({ kid }) => kid === undefined || kid === '') ? 'a key has no kid' : undefined,
  'publish keys with their ids, as Kubernetes since 1.16 and Sallyport do',
)

/** For relying parties that accept these algorithms only. */
export const onlyAlgorithms = (
  algorithms: readonly string[],
  todo: string,
): readonly Requirement[] => {
  const others = ({ keys }: IssuerInspection): string[] => [
    ...new Set(keys.map(({ alg }) => alg).filter((alg) => !algorithms.includes(alg))),
  ]
  return [
    must(
      (found) =>
        found.keys.length > 0 && found.keys.every(({ alg }) => !algorithms.includes(alg))
          ? `no key signs with ${algorithms.join(' or ')}, all with ${others(found).join(', ')}`
          : undefined,
      todo,
    ),
    should(
      (found) =>
        found.keys.some(({ alg }) => algorithms.includes(alg)) && others(found).length > 0
          ? `tokens that are signed with ${others(found).join(', ')} are rejected`
          : undefined,
      todo,
    ),
  ]
}

/** For relying parties that read this many keys of one type. */
export const maxKeys = (max: number): Requirement =>
  must(({ keys }) => {
    const counts = ['RSA', 'EC'].map((kind) => keys.filter(({ kty }) => kty === kind).length)
    const [highest = 0] = counts.toSorted((a, b) => b - a)
    return highest > max ? `${highest} keys of one type are published` : undefined
  }, `publish at most ${max}: drop retired keys`)

/** For relying parties with a short timeout. */
export const fasterThan = (ms: number): Requirement =>
  should(
    first((probe) =>
      probe.status !== undefined && probe.ms > ms
        ? `${probe.url} took ${Math.round(probe.ms)} ms`
        : undefined,
    ),
    `respond within ${ms} ms, if necessary from a static host near the relying party`,
  )

/** The most frequent mistake. */
export const noTrailingSlash: Requirement = should(
  ({ issuer }) => (issuer.endsWith('/') ? 'the issuer ends in a slash' : undefined),
  'leave the slash out of --service-account-issuer; libraries disagree on what to do with it',
)

/** For relying parties that use the list of algorithms. */
export const listedAlgorithms: Requirement = must(({ document, keys }) => {
  if (!document || keys.length === 0) return undefined
  const listed: unknown = member(document, 'id_token_signing_alg_values_supported') ?? ['RS256']
  const known: readonly unknown[] = Array.isArray(listed) ? listed : []
  const missing = [...new Set(keys.map(({ alg }) => alg).filter((alg) => !known.includes(alg)))]
  return missing.length > 0
    ? `id_token_signing_alg_values_supported does not list ${missing.join(', ')}`
    : undefined
}, 'list the algorithm of every key; without the list only RS256 is accepted')

/** For relying parties that check media types. */
export const jsonTypes: Requirement = must(
  first(({ url, status, contentType }) =>
    status === 200 && !/^application\/(?:jwk-set\+)?json\b/i.test(contentType)
      ? `${url} has the content type ${JSON.stringify(contentType)}`
      : undefined,
  ),
  'serve application/json and application/jwk-set+json, as listed in sallyport-publish.json',
)
