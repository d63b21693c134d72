import { member } from '../../jose/index.ts'
import type { IssuerSight } from './inspect.ts'
import type { Probe, Trust } from './probe.ts'

/** Something that a relying party demands or wishes of an issuer. */
export interface Demand {
  /** `fails`: it will not work there. `warns`: it may not, or not for long. */
  readonly level: 'fails' | 'warns'
  /** What is wrong, in words; undefined when all is well. */
  readonly problem: (sight: IssuerSight) => string | undefined
  readonly todo: string
}

/** Makes a demand without which it does not work. */
export const must = (problem: Demand['problem'], todo: string): Demand => ({
  level: 'fails',
  problem,
  todo,
})

/** Makes a demand that is a matter of care. */
export const should = (problem: Demand['problem'], todo: string): Demand => ({
  level: 'warns',
  problem,
  todo,
})

const publish =
  'serve the documents elsewhere: `sallyport issuer publish` for a static host, or `sallyport issuer serve`'

const unreachable = ({ url, status, problem }: Probe): string | undefined =>
  status === undefined ? `${url} cannot be reached (${problem ?? 'no answer'})` : undefined

/** What every relying party demands of an answer. */
function answerProblem(probe: Probe): string | undefined {
  const { url, status } = probe
  if (status === undefined) return unreachable(probe)
  if (status >= 300 && status < 400)
    return `${url} redirects (${status}), which hardly anybody follows`
  return undefined
}

const locked = ({ url, status }: Probe): string | undefined =>
  status === 401 || status === 403
    ? `${url} answers ${status} to whoever has no credential`
    : undefined

const broken = (probe: Probe): string | undefined => {
  const { url, status = 200 } = probe
  if (locked(probe) !== undefined || status < 400) return undefined
  return `${url} answers ${status}`
}

const probesOf = ({ discovery, jwks }: IssuerSight): Probe[] =>
  jwks ? [discovery, jwks] : [discovery]

const first =
  (test: (probe: Probe) => string | undefined) =>
  (sight: IssuerSight): string | undefined =>
    probesOf(sight)
      .map(test)
      .find((found) => found !== undefined)

const isHttps = ({ url, issuer }: IssuerSight): string | undefined =>
  url.protocol === 'https:' ? undefined : `the issuer ${issuer} is no https URL`

const hasQuery = ({ issuer }: IssuerSight): string | undefined =>
  /[?#]/.test(issuer) ? 'the issuer has a query or a fragment' : undefined

const sameIssuer = ({ document, issuer }: IssuerSight): string | undefined => {
  if (!document) return undefined
  const said = member(document, 'issuer')
  return said === issuer
    ? undefined
    : `the document names the issuer ${JSON.stringify(said)}, which is not ${JSON.stringify(issuer)}`
}

const isDocument = ({ discovery, document }: IssuerSight): string | undefined =>
  discovery.status === 200 && !document
    ? `${discovery.url} is not one JSON object without repeated members`
    : undefined

const namesKeys = ({ document, jwksUri }: IssuerSight): string | undefined =>
  document && jwksUri === undefined ? 'the document has no jwks_uri that is a URL' : undefined

const hasKeys = ({ jwks, keys }: IssuerSight): string | undefined =>
  jwks?.status === 200 && keys.length === 0 ? `${jwks.url} has no keys` : undefined

const showsPrivateKey = ({ keys }: IssuerSight): string | undefined =>
  keys.some(({ isPrivate }) => isPrivate)
    ? 'a PRIVATE key is published: everybody can sign'
    : undefined

const isUsable = ({ keys }: IssuerSight): string | undefined =>
  keys.length > 0 && !keys.some((key) => key.isUsable)
    ? 'no published key is RSA of 2048 bits or more, or on P-256, P-384 or P-521'
    : undefined

/** Demands that all have. */
export const everybody: readonly Demand[] = [
  must(isHttps, 'give the issuer an https URL (--service-account-issuer)'),
  must(hasQuery, 'leave out everything from the ? or # on (--service-account-issuer)'),
  must(
    first(answerProblem),
    'serve both documents at the addresses that they name, without a redirect',
  ),
  must(
    first(locked),
    'open them to everybody with --service-account-issuer-public (elsewhere: bind system:service-account-issuer-discovery to system:unauthenticated, with anonymous requests on)',
  ),
  must(first(broken), 'is it the address of an issuer, and does its server run?'),
  must(isDocument, 'serve the bytes of `sallyport issuer publish`'),
  must(
    sameIssuer,
    'use exactly the string that the document has, every slash included, or correct --service-account-issuer',
  ),
  must(namesKeys, 'set --service-account-jwks-uri to an address that outsiders reach'),
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
      ? `the certificate of ${new URL(url).host} is of no public CA (${problem ?? 'but of the one given'})`
      : undefined,
  )

/** For those who cannot be given a CA. */
export const publicTrust: Demand = must(
  notPublic(['given', 'nobody']),
  'use a certificate of a public CA, or publish the documents on a host that has one',
)

/** For those who can. */
export const knownTrust = (todo: string): readonly Demand[] => [
  must(notPublic(['nobody']), todo),
  should(notPublic(['given']), todo),
]

/** For those who come from the internet. */
export const publicAddress: Demand = must(
  ({ isInside, url, addresses }) =>
    isInside ? `${url.host} has only private addresses (${addresses.join(', ')})` : undefined,
  publish,
)

/** Tokens say which key is meant, and there must be one of that name. */
export const kidOnEveryKey: Demand = must(
  ({ keys }) =>
    keys.some(({ kid }) => kid === undefined || kid === '') ? 'a key has no kid' : undefined,
  'publish keys with their ids, as Kubernetes since 1.16 and Sallyport do',
)

/** Some algorithms only. */
export const onlyAlgorithms = (algorithms: readonly string[], todo: string): readonly Demand[] => {
  const others = ({ keys }: IssuerSight): string[] => [
    ...new Set(keys.map(({ alg }) => alg).filter((alg) => !algorithms.includes(alg))),
  ]
  return [
    must(
      (sight) =>
        sight.keys.length > 0 && sight.keys.every(({ alg }) => !algorithms.includes(alg))
          ? `no key signs with ${algorithms.join(' or ')}, all with ${others(sight).join(', ')}`
          : undefined,
      todo,
    ),
    should(
      (sight) =>
        sight.keys.some(({ alg }) => algorithms.includes(alg)) && others(sight).length > 0
          ? `tokens that are signed with ${others(sight).join(', ')} are refused there`
          : undefined,
      todo,
    ),
  ]
}

/** No more than this of one kind. */
export const mostKeys = (most: number): Demand =>
  must(({ keys }) => {
    const counts = ['RSA', 'EC'].map((kind) => keys.filter(({ kty }) => kty === kind).length)
    const [highest = 0] = counts.toSorted((a, b) => b - a)
    return highest > most ? `${highest} keys of one kind are published` : undefined
  }, `publish ${most} at most: drop retired keys`)

/** Those who do not wait. */
export const fasterThan = (ms: number): Demand =>
  should(
    first((probe) =>
      probe.status !== undefined && probe.ms > ms
        ? `${probe.url} took ${Math.round(probe.ms)} ms`
        : undefined,
    ),
    `answer within ${ms} ms, from a static host near the relying party if need be`,
  )

/** The one character over which most set-ups stumble. */
export const noLastSlash: Demand = should(
  ({ issuer }) => (issuer.endsWith('/') ? 'the issuer ends in a slash' : undefined),
  'leave the slash out of --service-account-issuer; libraries disagree on what to do with it',
)

/** Whether the list of algorithms tells the truth. */
export const honestAlgorithms: Demand = must(({ document, keys }) => {
  if (!document || keys.length === 0) return undefined
  const listed: unknown = member(document, 'id_token_signing_alg_values_supported') ?? ['RS256']
  const known: readonly unknown[] = Array.isArray(listed) ? listed : []
  const missing = [...new Set(keys.map(({ alg }) => alg).filter((alg) => !known.includes(alg)))]
  return missing.length > 0
    ? `id_token_signing_alg_values_supported does not list ${missing.join(', ')}`
    : undefined
}, 'list the algorithm of every key; without the list only RS256 is accepted')

/** Exact media types. */
export const jsonTypes: Demand = must(
  first(({ url, status, contentType }) =>
    status === 200 && !/^application\/(?:jwk-set\+)?json\b/i.test(contentType)
      ? `${url} has the type ${JSON.stringify(contentType)}`
      : undefined,
  ),
  'serve application/json and application/jwk-set+json, as sallyport-publish.json says',
)
