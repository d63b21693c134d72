import { isRecord } from '../../core/index.ts'
import { CredentialError } from '../errors.ts'
import type { AllowlistEntry, PluginHost, PluginPolicy } from './plugin.ts'
import { pathRules, resolveCommand } from './resolve-command.ts'

/** Reads the policy fields of a kuberc Preference; undefined if it has none. Anything doubtful is an error. */
export function readPluginPolicy(preference: unknown): PluginPolicy | undefined {
  const fields = isRecord(preference) ? preference : {}
  const policy = fields['credentialPluginPolicy'] ?? ''
  const list = fields['credentialPluginAllowlist']
  if (policy === '' && list == null) return undefined
  const allowlist = list == null ? undefined : readList(list)
  if (policy !== 'AllowAll' && policy !== 'DenyAll' && policy !== 'Allowlist') {
    throw policyInvalid(
      policy === ''
        ? 'credentialPluginAllowlist needs credentialPluginPolicy: Allowlist'
        : 'credentialPluginPolicy must be one of AllowAll, DenyAll, Allowlist',
    )
  }
  return { policy, ...(allowlist && { allowlist }) }
}

function readList(list: unknown): AllowlistEntry[] {
  if (!Array.isArray(list)) throw policyInvalid('credentialPluginAllowlist must be a list')
  return list.map((entry: unknown) => {
    // Kubernetes 1.35 called it name.
    const command = isRecord(entry) ? (entry['command'] ?? entry['name']) : undefined
    if (typeof command !== 'string') throw policyInvalid('an allowlist entry has no command')
    return { command }
  })
}

/** Decides whether a command may run; a policy that is not sound allows nothing. */
export async function isAllowed(
  command: string,
  resolvedPath: string | undefined,
  host: PluginHost,
): Promise<boolean> {
  const { policy } = host
  if (!policy) return true
  const problem = problemOfPolicy(policy, host)
  if (problem !== undefined) throw policyInvalid(problem)
  if (policy.policy !== 'Allowlist') return policy.policy === 'AllowAll'
  const allowlist = policy.allowlist ?? []
  if (allowlist.some((entry) => entry.command === command)) return true
  return resolvedPath !== undefined && resolvesToEntry(resolvedPath, allowlist, host)
}

async function resolvesToEntry(
  resolvedPath: string,
  allowlist: readonly AllowlistEntry[],
  host: PluginHost,
): Promise<boolean> {
  const path = pathRules(host)
  for (const entry of allowlist) {
    if (path.basename(entry.command) !== path.basename(resolvedPath)) continue
    const found = await resolveCommand(entry.command, host)
    if ('path' in found && found.path === resolvedPath) return true
  }
  return false
}

function problemOfPolicy(policy: PluginPolicy, host: PluginHost): string | undefined {
  const { policy: mode, allowlist } = policy
  if (mode !== 'Allowlist') {
    if (allowlist !== undefined) return `an allowlist does not go with the policy ${mode}`
    return mode === 'AllowAll' || mode === 'DenyAll' ? undefined : 'the policy is unknown'
  }
  if (allowlist === undefined || allowlist.length === 0) return 'the allowlist is empty'
  const path = pathRules(host)
  const index = allowlist.findIndex(
    ({ command }) => !command || path.normalize(command) !== command,
  )
  if (index === -1) return undefined
  return `entry ${index + 1} of the allowlist is empty or not a clean path`
}

const policyInvalid = (what: string): CredentialError =>
  new CredentialError('CONFIG_INVALID', `the policy for exec plugins is not valid: ${what}`)
