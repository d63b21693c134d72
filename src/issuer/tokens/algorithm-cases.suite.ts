import { constants, createHmac } from 'node:crypto'
import { publicJwk, type SigningKey } from '../../jose/index.ts'
import { refused, type TokenCase } from './attempts.suite.ts'
import { publicDer, wrongAlgorithm, wrongSignature } from './case-parts.suite.ts'
import { labKeys, signWith } from './token-lab.suite.ts'

const { rsa, p256, p384 } = labKeys

const publicPem = ({ publicKey }: SigningKey) =>
  publicKey.key.export({ type: 'spki', format: 'pem' }).toString()

const hmac = (secret: string | Buffer) => (input: Buffer) =>
  createHmac('sha256', secret).update(input).digest()

const p1363 = ({ key }: SigningKey) => ({ key, dsaEncoding: 'ieee-p1363' as const })

/** Cases about what a token says it is signed with. */
export const algorithmCases: readonly TokenCase[] = [
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
]
