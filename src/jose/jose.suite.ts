import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import type { Algorithm } from './algorithms.ts'

const curves = { ES256: 'P-256', ES384: 'P-384', ES512: 'P-521' } as const

/** A fresh private key for an algorithm. */
export function privateKeyFor(alg: Exclude<Algorithm, 'HS256'>): KeyObject {
  return alg === 'RS256'
    ? generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    : generateKeyPairSync('ec', { namedCurve: curves[alg] }).privateKey
}

/** Text or an object as a segment of a token. */
export const segment = (value: string | object): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
