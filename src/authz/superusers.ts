import {
  type Authorizer,
  type Decision,
  type RulesOfUser,
  type UserInfo,
  wellKnown,
} from '../core/index.ts'

const allowed: Decision = { allowed: true, reason: '' }
const noOpinion: Decision = { allowed: false, reason: '' }
const noRules: RulesOfUser = { resourceRules: [], nonResourceRules: [], incomplete: false }

/** True for members of `system:masters`, whom no rule binds. */
export const isSuperuser = (user: UserInfo): boolean => user.groups.includes(wellKnown.masters)

/** Lets members of `system:masters` do everything, so that no broken policy can lock them out. */
export const superusers: Authorizer = {
  authorize: ({ user }) => (isSuperuser(user) ? allowed : noOpinion),
  rulesFor: () => noRules, // the binding of cluster-admin lists them
}
