import type { KubeObject } from '../../core/index.ts'
import { bind, read, reportEvents, role, rule, systemAccount, user } from './writing.ts'

const system = 'kube-system'
const reader = 'extension-apiserver-authentication-reader'
const managerLock = 'system::leader-locking-kube-controller-manager'
const signer = 'system:controller:bootstrap-signer'
const cleaner = 'system:controller:token-cleaner'

/** The default Roles and RoleBindings of `kube-system` and `kube-public` that concern our kinds. */
export const namespacedRoles: readonly KubeObject[] = [
  role(system, reader, [rule(read, 'core', 'configmaps', 'extension-apiserver-authentication')]),
  bind(
    system,
    { role: reader, binding: `system::${reader}` },
    user('system:kube-controller-manager'),
    user('system:kube-scheduler'),
  ),
  role(system, managerLock, [rule(`create update ${read}`, 'coordination.k8s.io', 'leases')]),
  bind(
    system,
    { role: managerLock },
    user('system:kube-controller-manager'),
    systemAccount('kube-controller-manager'),
    systemAccount('leader-election-controller'),
  ),
  role(system, signer, [rule(read, 'core', 'secrets')]),
  bind(system, { role: signer }, systemAccount('bootstrap-signer')),
  role(system, cleaner, [rule(`delete ${read}`, 'core', 'secrets'), reportEvents]),
  bind(system, { role: cleaner }, systemAccount('token-cleaner')),
  role('kube-public', signer, [
    rule(read, 'core', 'configmaps'),
    rule('update', 'core', 'configmaps', 'cluster-info'),
    reportEvents,
  ]),
  bind('kube-public', { role: signer }, systemAccount('bootstrap-signer')),
]
