import { constants, createHmac } from 'node:crypto'
import { publicJwk, type SigningKey } from '../../jose/index.ts'
import { segment } from '../../jose/jose.suite.ts'
import { type Attempt, accepted, notOurs, refused, type TokenCase } from './attempts.suite.ts'
import { edgeSignatures, forgedByCubeRoot, malleated } from './forgeries.suite.ts'
import { type Claims, labKeys, signWith, type TokenLab } from './token-lab.suite.ts'

const { rsa, p256, p384, cubic, hidden, dropped, attacker, attackerRsa } = labKeys

const wrongAlgorithm = "the token's algorithm is not the one of its key"
const wrongSignature = "the token's signature is wrong"
const unknownKey = 'invalid signature, no keys found'
const notBase64 = 'is not base64url'
const extension = 'demands an extension'

const publicPem = ({ publicKey }: SigningKey) =>
  publicKey.key.export({ type: 'spki', format: 'pem' }).toString()
const publicDer = ({ publicKey }: SigningKey) =>
  publicKey.key.export({ type: 'spki', format: 'der' })
const hmac = (secret: string | Buffer) => (input: Buffer) =>
  createHmac('sha256', secret).update(input).digest()
const p1363 = ({ key }: SigningKey) => ({ key, dsaEncoding: 'ieee-p1363' as const })

/** The same token with other bytes in place of its signature. */
function resigned(token: string, change: (signature: Buffer) => Uint8Array): string {
  const [header, payload, signature = ''] = token.split('.')
  const changed = change(Buffer.from(signature, 'base64url'))
  return `${header}.${payload}.${Buffer.from(changed).toString('base64url')}`
}

/** Another spelling of the same bytes: the bits that nobody reads are set. */
function strayBits(part: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const last = alphabet.indexOf(part.at(-1) ?? '')
  if (part.length % 4 === 0) throw new Error('this part has no stray bits')
  return part.slice(0, -1) + alphabet[last + 1]
}

/** A token of which each part has stray bits. */
function roomyToken(lab: TokenLab): string {
  for (let pad = ''; ; pad += 'x') {
    const token = lab.token({ claims: { pad } })
    if (token.split('.').every((part) => part.length % 4 > 0)) return token
  }
}

function strayIn(lab: TokenLab, index: number): string {
  const parts = roomyToken(lab).split('.')
  return parts.map((part, at) => (at === index ? strayBits(part) : part)).join('.')
}

const headers = (lab: TokenLab, rows: Readonly<Record<string, Claims>>, why: string): Attempt[] =>
  Object.entries(rows).map(([name, header]) => refused(name, lab.token({ header }), why))

const byAttacker = (lab: TokenLab, header: Claims): Attempt[] => [
  refused('under its own id', lab.token({ key: attacker, header }), unknownKey),
  refused(
    'under our id',
    lab.token({ key: attackerRsa, header: { ...header, kid: rsa.kid } }),
    wrongSignature,
  ),
]

/** Cases about what a token is made of, from its algorithm to its spelling. */
export const signatureCases: readonly TokenCase[] = [
  {
    title: '[ISS-T1] alg none with an empty signature',
    attempts: (lab) => [
      refused(
        'with a kid',
        lab.signed({ alg: 'none', kid: rsa.kid }, () => Buffer.alloc(0)),
        wrongAlgorithm,
      ),
      refused(
        'without',
        lab.signed({ alg: 'none' }, () => Buffer.alloc(0)),
        wrongAlgorithm,
      ),
    ],
  },
  {
    title: '[ISS-T2] alg None and nOnE',
    attempts: (lab) =>
      ['None', 'nOnE', 'NONE', ''].map((alg) =>
        refused(
          alg,
          lab.signed({ alg, kid: rsa.kid }, () => Buffer.alloc(0)),
          wrongAlgorithm,
        ),
      ),
  },
  {
    title: '[ISS-T3] HS256 keyed with the public PEM',
    attempts: (lab) => [
      refused(
        'as it is',
        lab.signed({ alg: 'HS256', kid: rsa.kid }, hmac(publicPem(rsa))),
        wrongAlgorithm,
      ),
      refused(
        'without a kid',
        lab.signed({ alg: 'HS256' }, hmac(publicPem(rsa).trim())),
        wrongAlgorithm,
      ),
    ],
  },
  {
    title: '[ISS-T4] HS256 keyed with DER or JWK JSON',
    attempts: (lab) => [
      refused(
        'DER',
        lab.signed({ alg: 'HS256', kid: rsa.kid }, hmac(publicDer(rsa))),
        wrongAlgorithm,
      ),
      refused(
        'JWK',
        lab.signed({ alg: 'HS256', kid: rsa.kid }, hmac(JSON.stringify(publicJwk(rsa.publicKey)))),
        wrongAlgorithm,
      ),
    ],
  },
  {
    title: '[ISS-T5] RS256 header with the kid of an EC key',
    attempts: (lab) => [refused('', lab.token({ header: { kid: p256.kid } }), wrongAlgorithm)],
  },
  {
    title: '[ISS-T6] ES256 header with the kid of an RSA key',
    attempts: (lab) => [
      refused('', lab.token({ key: p256, header: { kid: rsa.kid } }), wrongAlgorithm),
    ],
  },
  {
    title: '[ISS-T7] PS256 with the RSA key',
    attempts: (lab) => {
      const padding = { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: 32 }
      const sign = signWith('sha256', { key: rsa.key, ...padding })
      return [
        refused('said', lab.signed({ alg: 'PS256', kid: rsa.kid }, sign), wrongAlgorithm),
        refused('not said', lab.signed({ alg: 'RS256', kid: rsa.kid }, sign), wrongSignature),
      ]
    },
  },
  {
    title: '[ISS-T8] RS384 and RS512 with the RS256 key',
    attempts: (lab) =>
      ['384', '512'].map((bits) =>
        refused(
          bits,
          lab.signed({ alg: `RS${bits}`, kid: rsa.kid }, signWith(`sha${bits}`, rsa.key)),
          wrongAlgorithm,
        ),
      ),
  },
  {
    title: '[ISS-T9] ES256 with a P-384 key',
    attempts: (lab) => [
      refused(
        '',
        lab.signed({ alg: 'ES256', kid: p384.kid }, signWith('sha256', p1363(p384))),
        wrongAlgorithm,
      ),
    ],
  },
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
    title: '[ISS-T19] crit with known, unknown and no names',
    attempts: (lab) => [
      ...headers(
        lab,
        { known: { crit: ['exp'] }, b64: { crit: ['b64'], b64: false }, none: { crit: [] } },
        extension,
      ),
      ...headers(lab, { 'b64 alone': { b64: false } }, extension),
    ],
  },
  {
    title: '[ISS-T20] typ: missing and JWT accepted, JWE and at+jwt refused',
    attempts: (lab) => [
      accepted('missing', lab.token()),
      accepted('JWT', lab.token({ header: { typ: 'JWT' } })),
      ...headers(
        lab,
        { JWE: { typ: 'JWE' }, access: { typ: 'at+jwt' }, addon: { typ: 'k8s-addon+jwt' } },
        'made for another purpose',
      ),
      ...headers(lab, { number: { typ: 1 } }, 'typ is not a string'),
    ],
  },
  {
    title: '[ISS-T21] a flipped byte of the payload',
    attempts: (lab) => {
      const [header, payload = '', signature] = lab.token().split('.')
      const flipped = Buffer.from(payload, 'base64url').toString().replace('"sa-1"', '"sa-2"')
      return [refused('', `${header}.${segment(flipped)}.${signature}`, wrongSignature)]
    },
  },
  {
    title: '[ISS-T22] a flipped header',
    attempts: (lab) => {
      const [, payload, signature] = lab.token().split('.')
      const header = { alg: 'RS256', kid: rsa.kid, x: 1 }
      return [refused('', `${segment(header)}.${payload}.${signature}`, wrongSignature)]
    },
  },
  {
    title: '[ISS-T23] a truncated or extended signature',
    attempts: (lab) =>
      [rsa, p256].flatMap((key) => [
        refused(
          'truncated',
          resigned(lab.token({ key }), (s) => s.subarray(0, -1)),
          wrongSignature,
        ),
        refused(
          'extended',
          resigned(lab.token({ key }), (s) => Buffer.concat([s, Buffer.alloc(1)])),
          wrongSignature,
        ),
        refused(
          'empty',
          resigned(lab.token({ key }), () => Buffer.alloc(0)),
          wrongSignature,
        ),
      ]),
  },
  {
    title: '[ISS-T24] a signature of zeros',
    attempts: (lab) =>
      [rsa, p256].map((key) =>
        refused(
          key.alg,
          resigned(lab.token({ key }), (s) => Buffer.alloc(s.length)),
          wrongSignature,
        ),
      ),
  },
  {
    title: '[ISS-T25] an ECDSA signature in DER',
    attempts: (lab) => [
      refused(
        '',
        lab.signed({ alg: 'ES256', kid: p256.kid }, signWith('sha256', p256.key)),
        wrongSignature,
      ),
    ],
  },
  {
    title: '[ISS-T26] ECDSA with r=0 or s=n',
    attempts: (lab) =>
      Object.entries(edgeSignatures).map(([name, change]) =>
        refused(name, resigned(lab.token({ key: p256 }), change), wrongSignature),
      ),
  },
  {
    title: '[ISS-T27] a malleated ES256 signature, which is no other identity',
    attempts: (lab) => {
      const token = lab.token({ key: p256 })
      return [accepted('as signed', token), accepted('malleated', resigned(token, malleated))]
    },
  },
  {
    title: '[ISS-T28] an RSA signature of wrong length',
    attempts: (lab) => [
      refused(
        'first byte stripped',
        resigned(lab.token(), (s) => s.subarray(1)),
        wrongSignature,
      ),
      refused(
        'a zero before it',
        resigned(lab.token(), (s) => Buffer.concat([Buffer.alloc(1), s])),
        wrongSignature,
      ),
    ],
  },
  {
    title: '[ISS-T29] forged PKCS#1 padding with e=3',
    attempts: (lab) => [
      accepted('the real key', lab.token({ key: cubic })),
      refused(
        'the forgery',
        lab.signed({ alg: 'RS256', kid: cubic.kid }, (input) =>
          forgedByCubeRoot(input, cubic.publicKey.key),
        ),
        wrongSignature,
      ),
    ],
  },
  {
    title: '[ISS-T30] 2, 4 and 5 parts',
    attempts: (lab) => {
      const [header, payload, signature] = lab.token().split('.')
      return [
        refused('2', `${header}.${payload}`),
        refused('4', `${header}.${payload}.${signature}.${signature}`),
        refused('5', `${header}.${header}.${payload}.${payload}.${signature}`),
        refused('1', 'token'),
      ]
    },
  },
  {
    title: '[ISS-T31] a JSON serialisation',
    attempts: (lab) => {
      const [header, payload, signature] = lab.token().split('.')
      return [
        refused('flattened', JSON.stringify({ protected: header, payload, signature })),
        refused(
          'general',
          JSON.stringify({ payload, signatures: [{ protected: header, signature }] }),
        ),
      ]
    },
  },
  {
    title: '[ISS-T32] spaces, line ends, a doubled Bearer',
    attempts: (lab) => [
      refused('space before', ` ${lab.token()}`, notBase64),
      refused('space after', `${lab.token()} `, notBase64),
      refused('line end', `${lab.token()}\n`, notBase64),
      refused('Bearer', `Bearer ${lab.token()}`, notBase64),
    ],
  },
  {
    title: '[ISS-T33] the standard alphabet, padding, stray characters',
    attempts: (lab) => [
      refused('alphabet', lab.token().replaceAll('-', '+').replaceAll('_', '/'), notBase64),
      refused('padding', `${lab.token()}==`, notBase64),
      refused('stray', `${lab.token()}!`, notBase64),
      refused('in the header', lab.token().replace('.', '!.'), notBase64),
    ],
  },
  {
    title: '[ISS-T34] non-canonical last bits in each part',
    attempts: (lab) => [
      accepted('none', roomyToken(lab)),
      refused('header', strayIn(lab, 0), `header ${notBase64}`),
      refused('payload', strayIn(lab, 1), `payload ${notBase64}`),
      refused('signature', strayIn(lab, 2), `signature ${notBase64}`),
    ],
  },
  {
    title: '[ISS-T71] a token of another cluster with the same issuer',
    attempts: (lab) => [
      refused('by its key', lab.token({ key: attacker }), unknownKey),
      refused('a stranger', lab.token({ claims: { iss: 'https://other.example' } }), notOurs),
    ],
  },
]
