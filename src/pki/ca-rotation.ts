import { createHash, type KeyObject, type X509Certificate } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandFailed } from '../core/index.ts'
import {
  type CaFiles,
  type CaRotation,
  type CaRotationStage,
  isSameCertificate,
  readCaFiles,
  rotationOf,
} from './ca-rotation-files.ts'
import { issueAuthorityCertificate } from './issue-certificate.ts'
import { generateEcKey, privateKeyPem, publicKeyPem } from './keys.ts'
import { readCertificateFile, readKeyFile, writeKeyFile, writePublicFile } from './pki-files.ts'

/** What can be done with a CA that is to be replaced. */
export type CaRotationAction = 'begin' | 'switch' | 'finish' | 'cancel'

/** Where and when. */
export interface CaRotationOrder {
  /** The PKI's. */
  readonly directory: string
  readonly now: number
  /** Of the new CA. */
  readonly lifetimeMs?: number
}

const defaultLifetimeMs = 3650 * 24 * 60 * 60_000

/** How far the replacement of the cluster's CA has come. */
export async function readCaRotation(directory: string): Promise<CaRotation> {
  return rotationOf(await readCaFiles(directory))
}

/**
 * Does one stage of replacing the cluster's CA. Each consists of steps that change one file each; whatever was
 * cut off between two of them is completed by doing the stage again, and every moment between leaves a PKI
 * that works.
 */
export async function rotateCa(
  action: CaRotationAction,
  order: CaRotationOrder,
): Promise<CaRotation> {
  const { stage } = await readCaRotation(order.directory)
  const wanted = before[action]
  if (stage !== wanted) throw outOfTurn(action, stage)
  for (const step of caRotationSteps[action]) await step(order)
  return readCaRotation(order.directory)
}

const before: Readonly<Record<CaRotationAction, CaRotationStage>> = {
  begin: 'none',
  switch: 'begun',
  finish: 'switched',
  cancel: 'begun',
}

type Step = (order: CaRotationOrder) => Promise<void>

const dropping =
  (name: Parameters<CaFiles['path']>[0]): Step =>
  async ({ directory }) => {
    const { path } = await readCaFiles(directory)
    await rm(path(name), { force: true })
  }

const dropNext = [dropping('nextKey'), dropping('nextCert')]

/** The steps of each stage, in order; each changes at most one file and may be done twice. */
export const caRotationSteps: Readonly<Record<CaRotationAction, readonly Step[]>> = {
  begin: [clearLeftovers, makeNextKey, makeNextCertificate, vouchForNext, trustNext],
  switch: [noteOld, signWithNext, putSigningFirst, ...dropNext],
  finish: [
    requireFollowed,
    putSigningFirst,
    distrustOld,
    ...dropNext,
    dropping('cross'),
    dropping('oldCert'),
  ],
  cancel: [distrustNext, ...dropNext, dropping('cross')],
}

/** Of a stage that was cut off after it had taken effect. */
async function clearLeftovers({ directory }: CaRotationOrder): Promise<void> {
  const { path, old, next, signing } = await readCaFiles(directory)
  if (old) await rm(path('oldCert'), { force: true })
  if (!next || !isSameCertificate(next, signing)) return
  await rm(path('nextKey'), { force: true })
  await rm(path('nextCert'), { force: true })
}

async function makeNextKey({ directory }: CaRotationOrder): Promise<void> {
  const { path } = await readCaFiles(directory)
  if (await readKeyFile(path('nextKey'))) return
  await writeKeyFile(path('nextKey'), privateKeyPem(await generateEcKey()).reveal())
}

async function makeNextCertificate(order: CaRotationOrder): Promise<void> {
  const { path, next } = await readCaFiles(order.directory)
  const key = await nextKeyOf(path)
  if (next?.checkPrivateKey(key)) return
  const { certPem } = await issueAuthorityCertificate(authorityOf(key, order))
  await writePublicFile(path('nextCert'), certPem)
}

/** Those who trust only the CA of today can then verify what the next one signs, until today's is dropped. */
async function vouchForNext(order: CaRotationOrder): Promise<void> {
  const { path, signing, key } = await readCaFiles(order.directory)
  const voucher = { certificate: signing, key }
  const nextKey = await nextKeyOf(path)
  const { certPem } = await issueAuthorityCertificate({ ...authorityOf(nextKey, order), voucher })
  await writePublicFile(path('cross'), certPem)
}

async function trustNext({ directory }: CaRotationOrder): Promise<void> {
  const { path, all, next } = await readCaFiles(directory)
  if (next) await writeRoots(path, [...all.filter((each) => !isSameCertificate(each, next)), next])
}

async function noteOld({ directory }: CaRotationOrder): Promise<void> {
  const { path, signing } = await readCaFiles(directory)
  await writePublicFile(path('oldCert'), signing.toString())
}

/** From here on the next CA signs: the moment of the switch. */
async function signWithNext({ directory }: CaRotationOrder): Promise<void> {
  const { path, next } = await readCaFiles(directory)
  const key = await nextKeyOf(path)
  if (!next?.checkPrivateKey(key))
    throw new CommandFailed(
      'PKI_MISMATCH',
      `${path('nextKey')} is not the key of ${path('nextCert')}`,
      { hint: 'take it back with `sallyport pki rotate-ca cancel` and begin again' },
    )
  await writeKeyFile(path('key'), privateKeyPem(key).reveal())
}

/** kubeadm and others take the first certificate of ca.crt for the one that ca.key belongs to. */
async function putSigningFirst({ directory }: CaRotationOrder): Promise<void> {
  const { path, all, signing } = await readCaFiles(directory)
  await writeRoots(path, [signing, ...all.filter((each) => each !== signing)])
}

async function distrustOld({ directory }: CaRotationOrder): Promise<void> {
  const { path, all, old } = await readCaFiles(directory)
  if (old)
    await writeRoots(
      path,
      all.filter((each) => !isSameCertificate(each, old)),
    )
}

async function distrustNext({ directory }: CaRotationOrder): Promise<void> {
  const { path, all, next } = await readCaFiles(directory)
  if (next)
    await writeRoots(
      path,
      all.filter((each) => !isSameCertificate(each, next)),
    )
}

/** A serving certificate that only the old CA vouches for would stop the next start of the server. */
async function requireFollowed({ directory }: CaRotationOrder): Promise<void> {
  const { old } = await readCaFiles(directory)
  const file = join(directory, 'apiserver.crt')
  const serving = await readCertificateFile(file)
  if (!serving || !old || !serving.first.checkIssued(old) || !serving.first.verify(old.publicKey))
    return
  throw new CommandFailed(
    'CA_ROTATION_NOT_FOLLOWED',
    `${file} is still signed by the old CA: the server has not taken over the new one yet`,
    { hint: 'start the server once, or see in its log why it could not' },
  )
}

async function writeRoots(path: CaFiles['path'], roots: readonly X509Certificate[]): Promise<void> {
  await writePublicFile(path('cert'), roots.join(''))
}

async function nextKeyOf(path: CaFiles['path']): Promise<KeyObject> {
  const key = await readKeyFile(path('nextKey'))
  if (key) return key
  throw new CommandFailed('PKI_INCOMPLETE', `${path('nextKey')} is missing`, {
    hint: 'take it back with `sallyport pki rotate-ca cancel` and begin again',
  })
}

/** With a name of its own, by which people and programs tell it from the one before. */
function authorityOf(key: KeyObject, { now, lifetimeMs = defaultLifetimeMs }: CaRotationOrder) {
  const id = createHash('sha256').update(publicKeyPem(key)).digest('hex').slice(0, 8)
  return { commonName: `kubernetes-${id}`, key, now, lifetimeMs }
}

function outOfTurn(action: CaRotationAction, stage: CaRotationStage): CommandFailed {
  const message = {
    none: 'no replacement of the CA is under way',
    begun: 'the replacement of the CA has begun: both CAs are trusted, the old one signs',
    switched: 'the new CA signs already, and the old one is still trusted',
  }[stage]
  const hint = {
    none: 'begin one with `sallyport pki rotate-ca begin`',
    begun: 'go on with `sallyport pki rotate-ca switch`, or take it back with `cancel`',
    switched: 'drop the old CA with `sallyport pki rotate-ca finish`',
  }[stage]
  return new CommandFailed('CA_ROTATION_OUT_OF_TURN', `cannot ${action}: ${message}`, { hint })
}
