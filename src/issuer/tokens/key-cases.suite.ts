import { publicJwk } from '../../jose/index.ts'
import { type Attempt, accepted, notOurs, refused, type TokenCase } from './attempts.suite.ts'
import { headers, publicDer, unknownKey, wrongSignature } from './case-parts.suite.ts'
import { type Claims, labKeys, type TokenLab } from './token-lab.suite.ts'

const { rsa, p256, hidden, dropped, attacker, attackerRsa } = labKeys

const byAttacker = (lab: TokenLab, header: Claims): Attempt[] => [
  refused('under its own id', lab.token({ key: attacker, header }), unknownKey),
  refused(
    'under our id',
    lab.token({ key: attackerRsa, header: { ...header, kid: rsa.kid } }),
    wrongSignature,
  ),
]

/** Cases about which key a token names, or brings along. */
export const keyCases: readonly TokenCase[] = [
  {
    title: '[ISS-T10] an unknown kid',
    attempts: (lab) => headers(lab, { unknown: { kid: 'somebody' } }, unknownKey),
  },
  {
    title: '[ISS-T11] no kid, which is accepted if a key verifies',
    attempts: (lab) => [
      accepted('RSA', lab.token({ header: { kid: undefined } })),
      accepted('P-256', lab.token({ key: p256, header: { kid: undefined } })),
      refused(
        'of another',
        lab.token({ key: attacker, header: { kid: undefined } }),
        wrongSignature,
      ),
    ],
  },
  {
    title: '[ISS-T12] a kid that is no string',
    attempts: (lab) =>
      headers(
        lab,
        { list: { kid: [rsa.kid] }, number: { kid: 1 }, null: { kid: null }, empty: { kid: '' } },
        'kid is not a short string',
      ),
  },
  {
    title: '[ISS-T13] a kid that is a path, SQL, NUL, too long or a prototype name',
    attempts: (lab) => [
      ...['../../etc/passwd', "' OR 1=1 --", '\0', '__proto__', 'constructor', 'toString'].map(
        (kid) => refused(kid, lab.token({ header: { kid } }), unknownKey),
      ),
      refused(
        'long',
        lab.token({ header: { kid: 'k'.repeat(1_025) } }),
        'kid is not a short string',
      ),
    ],
  },
  {
    title: '[ISS-T14] a signature by a dropped key',
    attempts: (lab) => [refused('', lab.token({ key: dropped }), unknownKey)],
  },
  {
    title: '[ISS-T15] a key kept out of discovery: accepted here, absent there',
    attempts: (lab) => [accepted('', lab.token({ key: hidden }), { outside: 'refused' })],
  },
  {
    title: '[ISS-T16] an embedded jwk of the attacker',
    attempts: (lab) => byAttacker(lab, { jwk: publicJwk(attacker.publicKey) }),
  },
  {
    title: '[ISS-T17] jku and x5u of the attacker, without one outbound request',
    attempts: (lab) => [
      ...byAttacker(lab, { jku: `${lab.attackerUrl}/jwks` }),
      ...byAttacker(lab, { x5u: `${lab.attackerUrl}/chain` }),
    ],
  },
  {
    title: '[ISS-T18] an x5c chain of the attacker',
    attempts: (lab) => byAttacker(lab, { x5c: [publicDer(attacker).toString('base64')] }),
  },
  {
    title: '[ISS-T71] a token of another cluster with the same issuer',
    attempts: (lab) => [
      refused('by its key', lab.token({ key: attacker }), unknownKey),
      refused('a stranger', lab.token({ claims: { iss: 'https://other.example' } }), notOurs),
    ],
  },
]
