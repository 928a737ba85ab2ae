import { Field } from '../../ui/field.tsx'
import { toast } from '../../ui/toast.tsx'
import { useForm } from '../form.ts'
import { request } from '../session.ts'

/** @param email of the own account, for password managers */
export function PasswordForm({ email }: { email: string | undefined }) {
  const { onSubmit, isBusy, problems, problem } = useForm(async (given) => {
    const body = {
      current_password: String(given.get('current_password')),
      new_password: String(given.get('new_password')),
    }
    await request('POST /v1/auth/password/change', { body })
    toast('The password is changed. All other sessions have ended.')
  })
  return (
    <section class="card stack" aria-labelledby="password">
      <div>
        <h2 id="password">Password</h2>
        <p class="soft small">Changing it ends all other sessions.</p>
      </div>
      <form class="stack narrow-form" onSubmit={onSubmit}>
        <input name="email" type="email" autocomplete="username" value={email} hidden readOnly />
        <Field label="Current password" problem={problems['current_password'] ?? problem}>
          {(attributes) => (
            <input
              name="current_password"
              type="password"
              autocomplete="current-password"
              required
              {...attributes}
            />
          )}
        </Field>
        <Field
          label="New password"
          hint="At least 8 characters."
          problem={problems['new_password']}
        >
          {(attributes) => (
            <input
              name="new_password"
              type="password"
              autocomplete="new-password"
              minLength={8}
              required
              {...attributes}
            />
          )}
        </Field>
        <div>
          <button type="submit" class="button" disabled={isBusy}>
            Change the password
          </button>
        </div>
      </form>
    </section>
  )
}
