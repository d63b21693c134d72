import { createHash, type KeyObject } from 'node:crypto'

/** The order of P-256. */
const p256Order = BigInt('0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551')

const toBigInt = (bytes: Uint8Array): bigint => BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
const toBytes = (value: bigint, length: number): Buffer =>
  Buffer.from(value.toString(16).padStart(length * 2, '0'), 'hex')

/** The other signature that is valid for the same message: (r, n - s). */
export function malleated(signature: Uint8Array): Buffer {
  const s = toBigInt(signature.slice(32))
  return Buffer.concat([signature.slice(0, 32), toBytes(p256Order - s, 32)])
}

/** Signatures of P-256 at the edge of what numbers may be. */
export const edgeSignatures = {
  zeroR: (s: Uint8Array): Buffer => Buffer.concat([Buffer.alloc(32), s.slice(32)]),
  orderS: (s: Uint8Array): Buffer => Buffer.concat([s.slice(0, 32), toBytes(p256Order, 32)]),
} as const

function cubeRoot(value: bigint): bigint {
  let low = 0n
  let high = 1n << BigInt(Math.ceil(value.toString(2).length / 3) + 1)
  while (low < high) {
    const middle = (low + high) / 2n
    if (middle ** 3n < value) low = middle + 1n
    else high = middle
  }
  return low
}

const sha256Info = Buffer.from('3031300d060960864801650304020105000420', 'hex')

/**
 * A signature for an RSA key with exponent 3, made without the private key: its cube begins like a
 * padded hash and ends in rubbish, which a careless verifier does not look at.
 */
export function forgedByCubeRoot(input: Uint8Array, publicKey: KeyObject): Buffer {
  const length = (publicKey.asymmetricKeyDetails?.modulusLength ?? 0) / 8
  const digest = createHash('sha256').update(input).digest()
  const begin = Buffer.concat([Buffer.from('0001ffffffffffffffff00', 'hex'), sha256Info, digest])
  const wanted = Buffer.concat([begin, Buffer.alloc(length - begin.length)])
  const forged = cubeRoot(toBigInt(wanted))
  const cube = toBytes(forged ** 3n, length)
  if (!cube.subarray(0, begin.length).equals(begin)) throw new Error('the forgery went wrong')
  return toBytes(forged, length)
}
