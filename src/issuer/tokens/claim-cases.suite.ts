import { segment } from '../../jose/jose.suite.ts'
import { type Attempt, accepted, notOurs, refused, type TokenCase } from './attempts.suite.ts'
import { boundTo, type Claims, labKeys, type TokenLab } from './token-lab.suite.ts'

const { rsa } = labKeys

const notOneObject = 'the payload is not a JSON object'
const notATime = 'not a time in whole seconds'
const expired = 'service account token has expired'
const notYet = 'service account token is not valid yet'
const otherAudience = 'is invalid for the target audiences'
const badAudience = 'the claim aud is neither'

const withClaims = (
  lab: TokenLab,
  rows: Readonly<Record<string, Claims>>,
  why?: string,
): Attempt[] =>
  Object.entries(rows).map(([name, claims]) =>
    why === undefined
      ? accepted(name, lab.token({ claims }))
      : refused(name, lab.token({ claims }), why),
  )

/** The payload of a good token as text, so that it can say what no object can. */
const text = (lab: TokenLab, before: string): string =>
  JSON.stringify(lab.claims()).replace('{', `{${before},`)

const textAfter = (lab: TokenLab, after: string): string =>
  JSON.stringify(lab.claims()).replace(/\}$/, `,${after}}`)

const rawExp = (lab: TokenLab, exp: string): string =>
  lab.tokenOf(JSON.stringify(lab.claims()).replace(/"exp":\d+/, `"exp":${exp}`))

const nested = (depth: number): string => `"x":${'['.repeat(depth)}${']'.repeat(depth)}`

const legacyClaims = {
  'kubernetes.io/serviceaccount/namespace': 'shop',
  'kubernetes.io/serviceaccount/secret.name': 'held',
  'kubernetes.io/serviceaccount/service-account.name': 'bot',
  'kubernetes.io/serviceaccount/service-account.uid': 'sa-1',
}

/** Cases about what a token says. */
export const claimCases: readonly TokenCase[] = [
  {
    title: '[ISS-T35] a payload that is no object, has a BOM or bad UTF-8',
    attempts: (lab) => {
      const good = Buffer.from(JSON.stringify(lab.claims()))
      return [
        refused('no JSON', lab.tokenOf('hello')),
        refused('a list', lab.tokenOf(JSON.stringify([lab.claims()]))),
        refused('a string', lab.tokenOf(JSON.stringify('claims'))),
        refused('null', lab.tokenOf('null')),
        refused('a BOM', lab.tokenOf(Buffer.concat([Buffer.from('\ufeff'), good]))),
        refused(
          'bad UTF-8',
          lab.tokenOf(
            Buffer.concat([
              Buffer.from('{"x":"'),
              Buffer.from([0xff]),
              Buffer.from('",'),
              good.subarray(1),
            ]),
          ),
          notOneObject,
        ),
        refused('two objects', lab.tokenOf(`${good.toString()}{}`)),
      ]
    },
  },
  {
    title: '[ISS-T36] aud twice',
    attempts: (lab) => [
      refused('another first', lab.tokenOf(text(lab, '"aud":["x"]')), notOneObject),
      refused('another last', lab.tokenOf(textAfter(lab, '"aud":["x"]')), notOneObject),
      refused('in another spelling', lab.tokenOf(text(lab, '"\\u0061ud":["x"]')), notOneObject),
    ],
  },
  {
    title: '[ISS-T37] iss twice',
    attempts: (lab) => [
      refused('another first', lab.tokenOf(text(lab, '"iss":"https://x"')), notOneObject),
      refused('another last', lab.tokenOf(textAfter(lab, '"iss":"https://x"'))),
    ],
  },
  {
    title: '[ISS-T38] look-alike claim names',
    attempts: (lab) =>
      withClaims(
        lab,
        { capitals: { ISS: 'x' }, 'long s': { ſub: 'x' }, wide: { ｅxp: 1 }, title: { Aud: 'x' } },
        'claim name resembles',
      ),
  },
  {
    title: '[ISS-T39] a __proto__ claim',
    attempts: (lab) => [
      refused('', lab.tokenOf(text(lab, '"__proto__":{"sub":"x"}')), notOneObject),
      refused('inside', lab.tokenOf(text(lab, '"x":{"__proto__":{"sub":"x"}}')), notOneObject),
    ],
  },
  {
    title: '[ISS-T40] deep nesting and a megabyte of payload',
    attempts: (lab) => [
      refused('deep', lab.tokenOf(text(lab, nested(4_000))), notOneObject),
      refused('deeper', lab.tokenOf(text(lab, nested(10_000)))),
      refused('a megabyte', lab.token({ claims: { x: 'x'.repeat(2 ** 20) } })),
    ],
  },
  {
    title: '[ISS-T41] exp missing',
    attempts: (lab) => withClaims(lab, { '': { exp: undefined } }, 'the token has no expiry'),
  },
  {
    title: '[ISS-T42] exp in text',
    attempts: (lab) => withClaims(lab, { '': { exp: '9999999999' } }, notATime),
  },
  {
    title: '[ISS-T43] exp that is no whole number',
    attempts: (lab) => [
      refused('infinite', rawExp(lab, '1e400'), notATime),
      refused('NaN', rawExp(lab, 'NaN')),
      ...withClaims(
        lab,
        { negative: { exp: -1 }, broken: { exp: lab.now + 0.5 }, null: { exp: null } },
        notATime,
      ),
    ],
  },
  {
    title: '[ISS-T44] exp 59 s ago is accepted, 61 s ago is not',
    attempts: (lab) => [
      ...withClaims(lab, { '59': { exp: lab.now - 59, iat: lab.now - 600, nbf: 0 } }),
      ...withClaims(lab, { '61': { exp: lab.now - 61, iat: lab.now - 600, nbf: 0 } }, expired),
    ],
  },
  {
    title: '[ISS-T45] nbf in 59 s is accepted, in 61 s is not',
    attempts: (lab) => [
      ...withClaims(lab, { '59': { nbf: lab.now + 59 } }),
      ...withClaims(lab, { '61': { nbf: lab.now + 61 } }, notYet),
    ],
  },
  {
    title: '[ISS-T46] iat in 61 s',
    attempts: (lab) => withClaims(lab, { '': { iat: lab.now + 61, nbf: undefined } }, notYet),
  },
  {
    title: '[ISS-T47] iat missing',
    attempts: (lab) =>
      withClaims(lab, { '': { iat: undefined } }, 'the token has no time of issue'),
  },
  {
    title: '[ISS-T48] a life longer than allowed',
    attempts: (lab) => [
      ...withClaims(lab, { longest: { exp: lab.now + 2 ** 32 } }),
      ...withClaims(lab, { longer: { exp: lab.now + 2 ** 32 + 1 } }, 'longer than allowed'),
    ],
  },
  {
    title: '[ISS-T49] a clock that jumps back',
    attempts: (lab) => {
      const token = lab.token()
      const back = (seconds: number) => (later: TokenLab) => {
        later.now -= seconds
      }
      return [
        accepted('before', token),
        accepted('by 59 s', token, { before: back(59) }),
        refused('by 2 s more', token, notYet, { before: back(2) }),
      ]
    },
  },
  {
    title: '[ISS-T50] aud missing',
    attempts: (lab) => withClaims(lab, { '': { aud: undefined } }, otherAudience),
  },
  {
    title: '[ISS-T51] an empty aud list',
    attempts: (lab) => withClaims(lab, { '': { aud: [] } }, badAudience),
  },
  {
    title: '[ISS-T52] an empty aud',
    attempts: (lab) =>
      withClaims(
        lab,
        { text: { aud: '' }, inside: { aud: ['https://issuer.example', ''] } },
        badAudience,
      ),
  },
  {
    title: '[ISS-T53] aud as the same string, which is accepted',
    attempts: (lab) => withClaims(lab, { '': { aud: 'https://issuer.example' } }),
  },
  {
    title: '[ISS-T54] aud that differs in case or slash',
    attempts: (lab) =>
      withClaims(
        lab,
        { slash: { aud: ['https://issuer.example/'] }, case: { aud: 'https://Issuer.example' } },
        otherAudience,
      ),
  },
  {
    title: '[ISS-T55] a list with ours among others, which is accepted',
    attempts: (lab) => withClaims(lab, { '': { aud: ['a', 'https://issuer.example', 'b'] } }),
  },
  {
    title: '[ISS-T56] aud as an object',
    attempts: (lab) =>
      withClaims(
        lab,
        { object: { aud: { x: 1 } }, numbers: { aud: [1] }, null: { aud: null } },
        badAudience,
      ),
  },
  {
    title: '[ISS-T57] iss with a slash, other case or look-alikes',
    attempts: (lab) =>
      withClaims(
        lab,
        {
          slash: { iss: 'https://issuer.example/' },
          case: { iss: 'https://Issuer.example' },
          'look-alike': { iss: 'https://іssuer.example' },
          number: { iss: 5 },
          missing: { iss: undefined },
        },
        notOurs,
      ),
  },
  {
    title: '[ISS-T58] the second configured issuer, which is accepted',
    attempts: (lab) => [
      accepted('', lab.token({ claims: { iss: 'https://old.example' } }), { outside: 'refused' }),
    ],
  },
  {
    title: '[ISS-T59] the legacy issuer with bound claims',
    attempts: (lab) =>
      withClaims(lab, { '': { iss: 'kubernetes/serviceaccount' } }, 'namespace claim is missing'),
  },
  {
    title: '[ISS-T60] our issuer with legacy claims',
    attempts: (lab) =>
      withClaims(
        lab,
        { '': { 'kubernetes.io': undefined, ...legacyClaims } },
        'the claim kubernetes.io is missing',
      ),
  },
  {
    title: '[ISS-T61] an issuer that is not configured, signed by our key',
    attempts: (lab) => withClaims(lab, { '': { iss: 'https://third.example' } }, notOurs),
  },
  {
    title: '[ISS-T62] a subject other than the private claims',
    attempts: (lab) => [
      ...withClaims(
        lab,
        {
          account: { sub: 'system:serviceaccount:shop:admin' },
          namespace: { sub: 'system:serviceaccount:kube-system:bot' },
          person: { sub: 'system:admin' },
        },
        'the subject is not the service account',
      ),
      ...withClaims(lab, { missing: { sub: undefined } }, 'the claim sub is missing'),
      refused(
        'two bonds',
        lab.token({ own: { ...boundTo.pod, ...boundTo.secret } }),
        'bound to two objects',
      ),
    ],
  },
  {
    title: '[ISS-T63] a namespace that is a path',
    attempts: (lab) => [
      refused(
        '',
        lab.token({
          claims: { sub: 'system:serviceaccount:../shop:bot' },
          own: { namespace: '../shop' },
        }),
        'not found',
        { outside: 'accepted' },
      ),
      refused('unsigned', `${segment({ alg: 'none', kid: rsa.kid })}.${segment({ iss: '../x' })}.`),
    ],
  },
]
