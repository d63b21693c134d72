import { clockRemark } from './clock-offset.ts'
import { DiscoveryFailed } from './discovery-failed.ts'
import type { RawAnswer } from './https-get.ts'

/** Who asked whom, for the sentence. */
export interface Asked {
  /** Host and port. */
  readonly place: string
  readonly tokenId: string
  /** Signed with the token, or without any credential. */
  readonly how: 'signed' | 'anonymous'
  readonly offsetMs: number | undefined
  /** The refusal itself is signed with the token, so it is the cluster's own word. */
  readonly authentic: boolean
}

const anotherToken =
  'make a new one with `sallyport token create` (or `kubeadm token create`) and use it whole'

/** What an answer with another status than 200 means. */
export function refusedAnswer(answer: RawAnswer, asked: Asked): DiscoveryFailed {
  const { status } = answer
  if (status === 401) return authRefused(asked)
  if (status === 403) return forbidden(asked)
  if (status === 404)
    return new DiscoveryFailed(
      'not-a-cluster',
      `${asked.place} has no cluster-info (404): it is no Kubernetes API server, or nobody has prepared it for joining yet`,
      {
        hint: 'check address and port; a cluster of kubeadm gets it with `kubeadm init phase bootstrap-token`',
        mayPass: true,
      },
    )
  if (status === 429 || status >= 500)
    return new DiscoveryFailed('not-ready', `${asked.place} is not ready (${status})`, {
      hint:
        status === 429
          ? 'too many requests, or too many with wrong tokens, came from this address: it is listened to again within a minute'
          : 'the server, or a load balancer before it, is starting or has too much to do',
      mayPass: true,
      retryAfterMs: retryAfter(answer),
    })
  const what =
    status >= 300 && status < 400
      ? `answered with a redirect (${status}), which nobody may follow before the server is trusted`
      : `answered ${status}, which no API server does here`
  return new DiscoveryFailed('not-a-cluster', `${asked.place} ${what}`, {
    hint: 'give address and port of the API server itself, not of a portal or proxy before it',
  })
}

function authRefused({ place, tokenId, how, offsetMs }: Asked): DiscoveryFailed {
  const clock = clockRemark(offsetMs)
  const refusal =
    how === 'signed'
      ? `refused the request that was signed with token ${tokenId} (401): the token is unknown, expired or mistyped, or the server knows no signed requests`
      : `refused the request that was signed with token ${tokenId}, and one without a credential as well (401): the token is unknown, expired or mistyped`
  return new DiscoveryFailed('auth-refused', `${place} ${refusal}${clock}`, {
    hint:
      clock === ''
        ? `${anotherToken}; an API server other than Sallyport must let anonymous requests read cluster-info`
        : 'set the clock first, for example by NTP: a signed request is valid for one minute',
    // The token may be made, or the clock be set, a moment after this machine has started.
    mayPass: true,
    passesSoon: true,
  })
}

function forbidden({ place, tokenId, how, authentic }: Asked): DiscoveryFailed {
  return how === 'signed'
    ? new DiscoveryFailed(
        'forbidden',
        `${place} knows token ${tokenId} but does not let it find the cluster (403)`,
        {
          hint: 'the token needs the usages signing and authentication: see `sallyport token list`',
          mayPass: !authentic,
          passesSoon: true,
        },
      )
    : new DiscoveryFailed(
        'forbidden',
        `${place} does not let requests without a credential read cluster-info (403)`,
        {
          hint: 'bind the role kubeadm:bootstrap-signer-clusterinfo in kube-public to system:anonymous, as `kubeadm init phase bootstrap-token` does',
          mayPass: true,
        },
      )
}

function retryAfter({ headers }: RawAnswer): number {
  const seconds = Number(headers['retry-after'])
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), 60) * 1000 : 0
}
