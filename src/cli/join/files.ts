import { X509Certificate } from 'node:crypto'
import { lstat, mkdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { JoinedIdentity } from '../../bootstrap/join/index.ts'
import {
  CommandFailed,
  readFileIfPresent,
  replaceFile,
  Secret,
  systemErrorCode,
} from '../../core/index.ts'
import {
  type Cluster,
  type Kubeconfig,
  type KubeconfigUser,
  parseKubeconfig,
} from '../../kubeconfig/index.ts'

/** A certificate that an earlier run has left in the kubeconfig. */
export interface PresentIdentity {
  readonly config: Kubeconfig
  readonly clusterName: string
  readonly cluster: Cluster
  readonly user: KubeconfigUser
  readonly certificate: X509Certificate
}

/** Reads who a kubeconfig is for; undefined if there is no such file. */
export async function presentIdentity(
  path: string,
  username: string,
): Promise<PresentIdentity | undefined> {
  const text = await textOf(path)
  if (text === undefined) return undefined
  const config = await parseKubeconfig(text, path).catch(() => undefined)
  const user = config?.users.get(username)
  const clusterName = config && clusterNameOf(config, username)
  const cluster = config?.clusters.get(clusterName ?? '')
  const certificate = certificateOf(user)
  if (config && clusterName !== undefined && cluster && user && certificate)
    return { config, clusterName, cluster, user, certificate }
  throw occupied(path, `is there already, and it is not the kubeconfig of ${username}`)
}

/** People put further contexts into the file; the one in use counts first. */
function clusterNameOf({ contexts, currentContext }: Kubeconfig, username: string) {
  const each = [contexts.get(currentContext), ...contexts.values()]
  return each.find((context) => context?.user === username)?.cluster
}

/** The file with a new certificate and location in the places of the old ones; whatever else is in it stays. */
export function renewedKubeconfig(
  { config, clusterName, user }: PresentIdentity,
  cluster: Cluster,
  { username, certificatePem, keyPem }: JoinedIdentity,
): Kubeconfig {
  const { clientCertificate: _certificate, clientKey: _key, ...others } = user
  const renewed = { ...others, clientCertificateData: certificatePem, clientKeyData: keyPem }
  return {
    ...config,
    clusters: new Map(config.clusters).set(clusterName, cluster),
    users: new Map(config.users).set(username, renewed),
  }
}

function certificateOf(user: KubeconfigUser | undefined): X509Certificate | undefined {
  try {
    return user?.clientCertificateData === undefined
      ? undefined
      : new X509Certificate(user.clientCertificateData)
  } catch {
    return undefined
  }
}

/** Refuses to write over a file of somebody else. */
export async function refuseOccupied(path: string): Promise<void> {
  if ((await textOf(path)) !== undefined) throw occupied(path, 'is there already')
}

/** The kubeconfig that is to be written may not be there; whatever else stands in its way is told. */
async function textOf(path: string): Promise<string | undefined> {
  return readFileIfPresent(path).catch((cause: unknown) => {
    const code = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('CANNOT_WRITE', `${path} cannot be the kubeconfig: ${whyNot(code)}`, {
      hint: 'choose another --out: a file that this user may read and write',
      cause,
    })
  })
}

const whyNot = (code: string): string =>
  ({
    EACCES: 'this user may not read it',
    EISDIR: 'it is a directory',
    ENAMETOOLONG: 'the name is too long for a file',
    ENOTDIR: 'what should be its directory is a file',
  })[code] ?? code

const occupied = (path: string, why: string): CommandFailed =>
  new CommandFailed('FILE_EXISTS', `${path} ${why}`, {
    hint: 'choose another --out, or --force to replace it',
  })

/** The key of a request that is under way, beside the kubeconfig that it is for. */
export class PendingKey {
  readonly #path: string | undefined

  /** Without a path nothing is kept. */
  constructor(kubeconfig: string | undefined) {
    this.#path =
      kubeconfig === undefined
        ? undefined
        : join(dirname(kubeconfig), `.${basename(kubeconfig)}.pending-key`)
  }

  /** The key of an earlier run; one that others may know counts as none. */
  async read(): Promise<Secret | undefined> {
    if (this.#path === undefined || !(await isPrivate(this.#path))) return undefined
    const pem = await readFileIfPresent(this.#path)
    return pem === undefined ? undefined : new Secret(pem)
  }

  async keep(keyPem: Secret): Promise<void> {
    if (this.#path !== undefined) await writePrivate(this.#path, keyPem.reveal())
  }

  async remove(): Promise<void> {
    if (this.#path !== undefined) await rm(this.#path, { force: true })
  }
}

/** Whether a file is our own and nobody else's: in a shared directory others may have put theirs there. */
async function isPrivate(path: string): Promise<boolean> {
  const self = process.getuid?.()
  // Windows has neither owners nor modes that would tell.
  if (self === undefined) return true
  const found = await lstat(path).catch(() => undefined)
  return found?.isFile() === true && found.uid === self && (found.mode & 0o077) === 0
}

/** Where the parts of an identity are, for programs that take files. */
export interface IdentityFiles {
  readonly ca: string
  readonly certificate: string
  readonly key: string
}

/** The names of those files. */
export const identityFilesIn = (directory: string): IdentityFiles => ({
  ca: join(directory, 'ca.crt'),
  certificate: join(directory, 'client.crt'),
  key: join(directory, 'client.key'),
})

/** Writes the files of an identity, each whole and for its owner only; the key first, so that no certificate is without. */
export async function writeIdentityFiles(
  directory: string,
  caPem: string,
  identity: Pick<JoinedIdentity, 'certificatePem' | 'keyPem'>,
): Promise<IdentityFiles> {
  const files = identityFilesIn(directory)
  await writePrivate(files.key, identity.keyPem.reveal())
  await writePrivate(files.certificate, identity.certificatePem)
  await writePrivate(files.ca, caPem)
  return files
}

async function writePrivate(path: string, content: string): Promise<void> {
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    await replaceFile(path, content, 0o600)
  } catch (cause) {
    const code = systemErrorCode(cause) ?? 'unknown error'
    throw new CommandFailed('CANNOT_WRITE', `cannot write ${path}: ${code}`, {
      hint: 'choose a place where this user may write',
      cause,
    })
  }
}
