import { urlWithoutQuery } from '../../http/fetch/index.ts'
import { type Cluster, clusterLocation, withLocation } from '../../kubeconfig/index.ts'
import { type LocationDocument, readLocationDocument } from './document.ts'
import { DiscoveryFailed } from './errors.ts'
import { maxRequestMs } from './limits.ts'
import {
  type CheckedOrder,
  checkDiscoveryOrder,
  completeParts,
  type DiscoveryOrder,
  type DiscoveryParts,
  type Proof,
} from './options.ts'
import { probeAddresses } from './probe-addresses.ts'
import {
  documentFromFile,
  documentFromStream,
  documentFromUrl,
  type FoundDocument,
} from './read-document.ts'
import { fetchTraced, type RequestContext } from './requests.ts'
import { retry } from './retry.ts'
import { askByToken, type TokenQuestion } from './token-discovery.ts'
import { checkPins, pinsOf } from './verify.ts'

/** A cluster that was found and may be trusted. */
export interface Discovery {
  /** How to reach it and whom to believe, as a kubeconfig has it; without a CA the system's roots are meant. */
  readonly cluster: Cluster
  /** The address that it announces, which may not be the one that was asked. */
  readonly advertised: string
  /** The address that was asked; absent if a document was given. */
  readonly asked?: string
  /** What speaks for it. */
  readonly proofs: readonly Proof[]
  /** The pin of each of its roots. */
  readonly pins: readonly string[]
  readonly warnings: readonly string[]
}

/** Finds a cluster and makes sure that it is the right one; throws DiscoveryFailed. Nothing secret is sent. */
export async function discoverCluster(
  order: DiscoveryOrder,
  parts: DiscoveryParts = {},
): Promise<Discovery> {
  const run = new DiscoveryRun(checkDiscoveryOrder(order), completeParts(parts))
  return run.find()
}

class DiscoveryRun {
  readonly #order: CheckedOrder
  readonly #parts: Required<DiscoveryParts>

  constructor(order: CheckedOrder, parts: Required<DiscoveryParts>) {
    this.#order = order
    this.#parts = parts
  }

  async find(): Promise<Discovery> {
    const { method } = this.#order
    if (method.by === 'token') {
      const question = { ...method, clock: this.#parts.clock }
      return this.#withRetries((context) =>
        this.#byToken(method.addresses, { ...question, context }),
      )
    }
    // What cannot be read twice is read before the first attempt.
    const given = method.by === 'url' ? undefined : await this.#read(method)
    return this.#withRetries(async (context) =>
      this.#byDocument(given ?? (await this.#read(method, context)), context),
    )
  }

  #withRetries<T>(attempt: (context: RequestContext) => Promise<T>): Promise<T> {
    const { clock, signal, pause, onProgress, log } = this.#parts
    return retry(
      (remainingMs) => {
        const timeoutMs = Math.max(Math.ceil(Math.min(maxRequestMs, remainingMs)), 1)
        return attempt({ timeoutMs, signal, log })
      },
      {
        timeoutMs: this.#order.timeoutMs,
        soonMs: this.#order.tokenTimeoutMs,
        clock,
        signal,
        pause,
        onWait: (failure, waitMs) => {
          const { reason } = failure
          log.trace({ reason, waitMs: Math.round(waitMs) }, 'attempt failed, another follows')
          onProgress({ step: 'waiting', failure, waitMs })
        },
      },
    )
  }

  /** One address after the other; a failure that will not pass ends it at once. */
  async #byToken(
    addresses: readonly string[],
    question: Omit<TokenQuestion, 'address'>,
  ): Promise<Discovery> {
    const failures: DiscoveryFailed[] = []
    for (const address of addresses) {
      try {
        return await this.#atAddress({ ...question, address })
      } catch (error) {
        if (!(error instanceof DiscoveryFailed) || !error.mayPass) throw error
        failures.push(error)
      }
    }
    throw allOf(failures)
  }

  async #atAddress(question: TokenQuestion): Promise<Discovery> {
    const { address, context } = question
    this.#parts.onProgress({ step: 'asking', address })
    const { kubeconfig, proof } = await askByToken(question, (request) =>
      // Not verified: the token's signature of the response is checked, and only then are its CAs trusted.
      fetchTraced(request, { verify: false }),
    )
    this.#prove(proof)
    const document = await readLocationDocument(kubeconfig, { where: `cluster-info of ${address}` })
    const proofs: Proof[] = [proof, ...this.#checkPins(document), 'second-fetch']
    const roots = await this.#rootsFor(document)
    const { tlsServerName: servername } = document.cluster
    const again = await askByToken(
      { ...question, how: proof === 'signed-answer' ? 'signed' : 'anonymous' },
      (request) =>
        fetchTraced(request, {
          ca: roots,
          ...(servername !== undefined && { servername }),
        }),
    )
    if (again.kubeconfig !== kubeconfig) throw differs(address)
    this.#prove('second-fetch')
    return this.#finish({ document, proofs, roots, context, asked: address })
  }

  async #byDocument(found: FoundDocument, context: RequestContext): Promise<Discovery> {
    const document = await readLocationDocument(found.text, found.origin)
    const proof = this.#order.method.by === 'url' ? 'system-roots' : 'out-of-band'
    this.#prove(proof)
    const proofs: Proof[] = [proof, ...this.#checkPins(document)]
    return this.#finish({ document, proofs, roots: await this.#rootsFor(document), context })
  }

  async #read(
    method: Exclude<CheckedOrder['method'], { readonly by: 'token' }>,
    context?: RequestContext,
  ): Promise<FoundDocument> {
    const { onProgress, systemRoots, signal, log } = this.#parts
    if (method.by === 'file') {
      onProgress({ step: 'reading', where: method.path })
      return documentFromFile(method.path)
    }
    if (method.by === 'stream') {
      onProgress({ step: 'reading', where: method.name })
      return documentFromStream(method.stream, method.name)
    }
    onProgress({ step: 'reading', where: urlWithoutQuery(new URL(method.url)) })
    const own = { timeoutMs: maxRequestMs, signal, log }
    return documentFromUrl(method.url, await systemRoots(), context ?? own)
  }

  #checkPins({ roots, cluster }: LocationDocument): Proof[] {
    const { pins } = this.#order
    this.#parts.log.trace({ seen: pinsOf(roots), given: pins }, 'roots of the document')
    checkPins(pinsOf(roots), pins, clusterLocation(cluster).systemRoots)
    if (pins.length === 0) return []
    this.#prove('pins')
    return ['pins']
  }

  #prove(proof: Proof): void {
    this.#parts.log.trace({ proof }, 'proven')
    this.#parts.onProgress({ step: 'proven', proof })
  }

  /** PEM of whom to trust: the document's own roots, and the system's where it has none or says so. */
  async #rootsFor({ cluster }: LocationDocument): Promise<string> {
    const { rootsPem, systemRoots } = clusterLocation(cluster)
    const others = rootsPem === undefined || systemRoots ? await this.#parts.systemRoots() : []
    return [...(rootsPem === undefined ? [] : [rootsPem]), ...others].join('\n')
  }

  async #finish(found: {
    readonly document: LocationDocument
    readonly proofs: readonly Proof[]
    readonly roots: string
    readonly context: RequestContext
    readonly asked?: string
  }): Promise<Discovery> {
    const { document, roots, context, asked } = found
    const advertised = document.cluster.server
    const keeps = this.#order.keepAddress && asked !== undefined
    const cluster = keeps ? onlyAt(asked, document.cluster) : document.cluster
    const troubles = await probeAddresses({
      cluster: { ...cluster, certificateAuthorityData: roots },
      context,
      onProbe: (address) => this.#parts.onProgress({ step: 'probing', address }),
      // It answered without the proxy that clients will go through.
      ...(asked !== undefined && cluster.proxyUrl === undefined && { proven: asked }),
    })
    const warnings = [...document.warnings, ...troubles]
    for (const message of warnings) this.#parts.onProgress({ step: 'warning', message })
    return {
      cluster,
      advertised,
      proofs: found.proofs,
      pins: pinsOf(document.roots),
      warnings,
      ...(asked !== undefined && { asked }),
    }
  }
}

/** The other addresses go as well: whoever keeps the one that was typed has a reason. */
const onlyAt = (address: string, cluster: Cluster): Cluster =>
  withLocation(cluster, { ...clusterLocation(cluster), addresses: [address] })

function allOf(failures: readonly DiscoveryFailed[]): DiscoveryFailed {
  const [first, ...others] = failures
  if (!first) throw new RangeError('there was no address to ask')
  if (others.length === 0) return first
  return new DiscoveryFailed(first.reason, failures.map(({ message }) => message).join('; '), {
    hint: first.hint ?? '',
    mayPass: true,
    passesSoon: failures.every(({ passesSoon }) => passesSoon),
    retryAfterMs: Math.min(...failures.map(({ retryAfterMs }) => retryAfterMs)),
    cause: first,
  })
}

const differs = (address: string): DiscoveryFailed =>
  new DiscoveryFailed(
    'second-fetch-differs',
    `${new URL(address).host} said one thing before it proved who it is and another thing after`,
    {
      hint: 'if the cluster was changed this very moment, run it again; otherwise somebody is in between',
    },
  )
