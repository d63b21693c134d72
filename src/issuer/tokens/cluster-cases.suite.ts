import { type Attempt, accepted, notOurs, refused, type TokenCase } from './attempts.suite.ts'
import { boundTo, labObjects, type TokenLab } from './token-lab.suite.ts'

const invalidated = 'service account token has been invalidated'
/** Whoever only knows the documents goes on to accept until `exp`. */
const unseen = { outside: 'accepted' } as const

const { account, pod, secret, node } = labObjects

const endingFor = (what: typeof pod, seconds: number) => (lab: TokenLab) =>
  lab.endingSince(what, seconds)

/** A token before and after something happens to its object. */
const dies = (token: string, why: string, before: (lab: TokenLab) => Promise<void>): Attempt[] => [
  accepted('before', token),
  refused('after', token, why, { ...unseen, before }),
]

/** Cases about what stands behind a token, and about reviews. */
export const clusterCases: readonly TokenCase[] = [
  {
    title: '[ISS-T64] a deleted ServiceAccount',
    attempts: (lab) =>
      dies(lab.token(), 'serviceaccounts "bot" not found', (later) => later.remove(account)),
  },
  {
    title: '[ISS-T65] a ServiceAccount made again under its name',
    attempts: (lab) =>
      dies(lab.token(), 'service account UID (another) does not match claim (sa-1)', (later) =>
        later.makeAgain(account),
      ),
  },
  {
    title: '[ISS-T66] a deleted Pod',
    attempts: (lab) =>
      dies(lab.token({ own: boundTo.pod }), invalidated, (later) => later.remove(pod)),
  },
  {
    title: '[ISS-T67] a Pod made again',
    attempts: (lab) =>
      dies(lab.token({ own: boundTo.pod }), 'pod UID (another) does not match', (later) =>
        later.makeAgain(pod),
      ),
  },
  {
    title: '[ISS-T68] a Pod that is terminating since 59 s is accepted, since 61 s it is not',
    attempts: (lab) => {
      const token = lab.token({ own: boundTo.pod })
      return [
        accepted('59 s', token, { before: endingFor(pod, 59) }),
        refused('61 s', token, invalidated, { ...unseen, before: endingFor(pod, 61) }),
        accepted('the account, 59 s', lab.token(), { before: endingFor(account, 59) }),
        refused('the account, 61 s', lab.token(), 'service account shop/bot has been deleted', {
          ...unseen,
          before: endingFor(account, 61),
        }),
      ]
    },
  },
  {
    title: '[ISS-T69] a deleted Secret',
    attempts: (lab) =>
      dies(lab.token({ own: boundTo.secret }), invalidated, (later) => later.remove(secret)),
  },
  {
    title: '[ISS-T70] a deleted Node; the token of a Pod on it is accepted',
    attempts: (lab) => [
      ...dies(lab.token({ own: boundTo.node }), invalidated, (later) => later.remove(node)),
      accepted('of its Pod', lab.token({ own: boundTo.pod })),
    ],
  },
  {
    title: '[ISS-T72] a cached token for another audience',
    attempts: (lab) => {
      const token = lab.token({ claims: { aud: ['https://issuer.example', 'vault'] } })
      const wrong = 'is invalid for the target audiences ["bank"]'
      return [
        accepted('for us', token),
        accepted('for vault', token, { audiences: ['vault'] }),
        refused('for a bank', token, wrong, { audiences: ['bank'] }),
        accepted('for one of two', token, { audiences: ['bank', 'vault'] }),
      ]
    },
  },
  {
    title: '[ISS-T73] a flood of junk tokens',
    attempts: (lab) => {
      const token = lab.token()
      const junk = Array.from({ length: 200 }, (_none, index) =>
        refused(
          `junk ${index}`,
          `${token.slice(0, -8)}${String(index).padStart(8, 'A')}`,
          'the token',
        ),
      )
      return [accepted('before', token), ...junk, accepted('after', token)]
    },
  },
  {
    title: '[ISS-T74] warnafter passed, which is accepted and noted',
    attempts: (lab) => [
      accepted('passed', lab.token({ own: { ...boundTo.pod, warnafter: lab.now - 10 } })),
      accepted('to come', lab.token({ own: { ...boundTo.pod, warnafter: lab.now + 10 } })),
    ],
  },
  {
    title: '[ISS-T75] an empty token, which a TokenReview answers with 400',
    attempts: () => [refused('', '', notOurs)],
  },
]
