import { type ContestCase, execUser, standIns } from '../contest-case.ts'

/** Section 2.13: a policy for plugins, which kubectl has since 1.35. */
export const policyCases: readonly ContestCase[] = [
  policy('AllowAll', { credentialPluginPolicy: 'AllowAll' }),
  policy('DenyAll', { credentialPluginPolicy: 'DenyAll' }),
  policy('Allowlist with the path', allow(`${standIns}warns`)),
  policy('Allowlist with another path', allow('/usr/bin/aws')),
  policy('Allowlist with its name only', allow('warns')),
  policy('Allowlist without a list', { credentialPluginPolicy: 'Allowlist' }),
  policy('an empty Allowlist', {
    credentialPluginPolicy: 'Allowlist',
    credentialPluginAllowlist: [],
  }),
  policy('a list without Allowlist', { ...allow('warns'), credentialPluginPolicy: 'DenyAll' }),
  policy('a path that is not clean', allow(`${standIns}../exec-plugins/warns`)),
  policy('an unknown policy', { credentialPluginPolicy: 'Maybe' }),
]

function policy(name: string, fields: object): ContestCase {
  return { name: `policy: ${name}`, user: execUser('warns'), policy: () => fields }
}

function allow(command: string): object {
  return { credentialPluginPolicy: 'Allowlist', credentialPluginAllowlist: [{ command }] }
}
