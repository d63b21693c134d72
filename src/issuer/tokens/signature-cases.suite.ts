import { segment } from '../../jose/jose.suite.ts'
import { accepted, refused, type TokenCase } from './attempts.suite.ts'
import { wrongSignature } from './case-parts.suite.ts'
import { edgeSignatures, forgedByCubeRoot, malleated } from './forgeries.suite.ts'
import { labKeys, signWith } from './token-lab.suite.ts'

const { rsa, p256, cubic } = labKeys

/** The same token with other bytes in place of its signature. */
function resigned(token: string, change: (signature: Buffer) => Uint8Array): string {
  const [header, payload, signature = ''] = token.split('.')
  const changed = change(Buffer.from(signature, 'base64url'))
  return `${header}.${payload}.${Buffer.from(changed).toString('base64url')}`
}

/** Cases about what is signed, and the signature itself. */
export const signatureCases: readonly TokenCase[] = [
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
]
