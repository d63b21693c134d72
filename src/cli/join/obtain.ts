import { realpath } from 'node:fs/promises'
import { kubeTime } from '../../core/index.ts'
import { systemRoots } from '../../discovery/client/index.ts'
import {
  type JoinIdentity,
  type JoinOrder,
  joinCluster,
  joinedKubeconfig,
  usernameOf,
} from '../../discovery/join/index.ts'
import { type Cluster, renderKubeconfig, writeKubeconfig } from '../../kubeconfig/index.ts'
import {
  PendingKey,
  type PresentIdentity,
  renewedKubeconfig,
  writeIdentityFiles,
} from './join-files.ts'
import type { JoinOptions } from './join-options.ts'
import type { JoinOutcome } from './join-outcome.ts'
import type { JoinRun } from './join-run.ts'

/** Gets the certificate and leaves it in files; the key is kept from before the request to the end. */
export async function obtain(
  order: Pick<JoinOrder, 'cluster' | 'credential' | 'as'>,
  place: {
    readonly out: string
    /** What is there already. */
    readonly present: PresentIdentity | undefined
    readonly run: JoinRun
  },
): Promise<JoinOutcome> {
  const { out, present, run } = place
  const { options } = run
  const pending = new PendingKey(out === '-' ? undefined : out)
  if (options.force) await pending.remove()
  const keyPem = await pending.read()
  const identity = await joinCluster(
    {
      ...order,
      timeoutMs: options.timeout,
      approvalTimeoutMs: options.approvalTimeout,
      ...(keyPem && { keyPem }),
      ...(options.lifetime !== undefined && { lifetimeMs: options.lifetime }),
    },
    {
      ...run.parts,
      keepKey: (key) => pending.keep(key),
      onJoinProgress: (progress) => run.reporter.join(progress),
    },
  )
  const certDir = certDirOf(options, out)
  if (certDir !== undefined)
    await writeIdentityFiles(certDir, await caOf(order.cluster, run), identity)
  const config = present
    ? renewedKubeconfig(present, order.cluster, identity)
    : joinedKubeconfig(order.cluster, identity)
  if (out === '-') run.io.stdout(await renderKubeconfig(config))
  // A link to what is there stays one: the file behind it is what others read.
  else await writeKubeconfig(present ? await realpath(out) : out, config)
  await pending.remove()
  return {
    did: 'joined',
    cluster: order.cluster,
    kubeconfig: out,
    identity: {
      username: identity.username,
      expires: kubeTime(identity.expiresAt),
      request: identity.request,
    },
    ...(certDir !== undefined && { certDir }),
  }
}

/** Nothing to do, except that files for other programs may be missing. */
export async function asItIs(
  present: PresentIdentity,
  as: JoinIdentity,
  { out, run }: { readonly out: string; readonly run: JoinRun },
): Promise<JoinOutcome> {
  const { cluster, user, certificate } = present
  const certDir = certDirOf(run.options, out)
  const { clientCertificateData: certificatePem, clientKeyData: keyPem } = user
  if (certDir !== undefined && certificatePem !== undefined && keyPem)
    await writeIdentityFiles(certDir, await caOf(cluster, run), { certificatePem, keyPem })
  return {
    did: 'present',
    cluster,
    kubeconfig: out,
    identity: { username: usernameOf(as), expires: kubeTime(Date.parse(certificate.validTo)) },
    ...(certDir !== undefined && { certDir }),
  }
}

/** An agent takes files, so it gets some beside the kubeconfig. */
const certDirOf = ({ certDir, tunnelAgent }: JoinOptions, out: string): string | undefined =>
  certDir ?? (tunnelAgent ? `${out.replace(/\.kubeconfig$/, '')}.pki` : undefined)

const caOf = async ({ certificateAuthorityData: pem }: Cluster, run: JoinRun): Promise<string> =>
  pem ?? (await systemRoots(run.io.env)).join('\n')
