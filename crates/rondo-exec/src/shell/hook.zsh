# Set by the lines above: __rondo_nonce, __rondo_dir. Defined before the user's own start file, so
# that no alias of theirs changes what stands here.
builtin zmodload zsh/parameter
typeset -g __rondo_seq=0 __rondo_status=0 __rondo_ps1= __rondo_line= __rondo_name= __rondo_try= __rondo_next=

# Lines end with a line feed, and are escaped: `read -d` would set the terminal to another mode and back,
# whatever it reads from, while the supervisor may have it in a third.

# Each mark goes to the terminal itself: the user may have redirected the shell's own output.
__rondo_mark() {
    builtin printf '\e]133;rondo;%s;%s;%s;%s\a' "$__rondo_nonce" "$1" "$__rondo_seq" "$__rondo_status" > /dev/tty
}

__rondo_prompt() {
    __rondo_status=$?
    builtin emulate -L zsh
    # Here Ctrl-C comes too late for the command; the shell would leave the hook and not come back.
    builtin trap '' INT
    {
        builtin printf 's:%s:%s:%s\0%s\0' "$__rondo_nonce" "$__rondo_seq" "$__rondo_status" "$PWD"
        builtin print -r -- "${jobstates[@]}"
        builtin printf '\0'
        for __rondo_name in ${(k)parameters[(R)*export*]}; do
            [[ ${parameters[$__rondo_name]} == (array|association)* ]] && continue
            builtin printf '%s=%s\0' "$__rondo_name" "${(P)__rondo_name}"
        done
        builtin printf '\0e:%s\0' "$__rondo_nonce"
    } > "$__rondo_dir/state"
    # Again after a second: Ctrl-C makes the terminal drop what was written and not read.
    for __rondo_try in 1 2 3 4 5 6 7 8 9 10; do
        __rondo_mark D
        while IFS= builtin read -t 1 -r __rondo_line; do
            [[ $__rondo_line == "k:$__rondo_nonce:$__rondo_seq" ]] && break 2
        done
    done < "$__rondo_dir/line"
    __rondo_hide
    [[ $PS1 == *$__rondo_nonce* ]] || __rondo_ps1=$PS1
    PS1=$'%{\e]133;rondo;'"$__rondo_nonce;B;$__rondo_seq;0"$'\a%}'
    return $__rondo_status
} 2> /dev/null

__rondo_read() {
    builtin emulate -L zsh
    # Said again after a second, as the end of a command is. Only a head is waited for so: of a long line
    # what was read by then would be lost.
    while __rondo_mark R; do
        while IFS= builtin read -t 1 -r __rondo_line; do
            [[ $__rondo_line == "l:$__rondo_nonce" ]] || continue
            # An interrupted read must leave the number as it was.
            IFS= builtin read -r __rondo_next &&
                IFS= builtin read -r __rondo_line &&
                __rondo_seq=$__rondo_next || __rondo_line=
            break 2
        done
    done < "$__rondo_dir/line"
    __rondo_line=${(g::)__rondo_line}
    PS1=$__rondo_ps1
    __rondo_mark C
    builtin print -rs -- "$__rondo_line"
    return $__rondo_status
} 2> /dev/null

# The line that calls us is not the user's: what they have run before a command is out of the way while it
# is read, and is called with their line and put back before that runs.
__rondo_hide() {
    builtin emulate -L zsh
    typeset -ga preexec_functions __rondo_preexec
    __rondo_preexec+=(${preexec_functions:|__rondo_preexec})
    preexec_functions=()
    if (( ${+functions[preexec]} )); then
        functions[__rondo_users_preexec]=$functions[preexec]
        unfunction preexec
    fi
}

__rondo_show() {
    builtin emulate -L zsh
    typeset -ga preexec_functions __rondo_preexec
    preexec_functions=($__rondo_preexec)
    __rondo_preexec=()
    if (( ${+functions[__rondo_users_preexec]} )); then
        functions[preexec]=$functions[__rondo_users_preexec]
        unfunction __rondo_users_preexec
    fi
}

__rondo_before() {
    __rondo_show
    for __rondo_name in preexec "${preexec_functions[@]}"; do
        if (( ${+functions[$__rondo_name]} )); then
            $__rondo_name "$__rondo_line" "$__rondo_line" "$__rondo_line"
        fi
    done
    return $__rondo_status
}

# The line that calls us is not for the history either.
__rondo_forget() {
    [[ $1 != *__rondo_read* ]]
}

# After each command, since a command can change what runs before the prompt.
__rondo_keep() {
    __rondo_status=$?
    __rondo_install
    return $__rondo_status
}

__rondo_install() {
    # The mark for a line without an end is ours to make, and there is no line editor.
    builtin unsetopt prompt_sp prompt_cr zle
    __rondo_enlist
}

__rondo_enlist() {
    builtin emulate -L zsh
    typeset -ga precmd_functions zshaddhistory_functions
    precmd_functions=(${precmd_functions:#__rondo_prompt} __rondo_prompt)
    zshaddhistory_functions=(${zshaddhistory_functions:#__rondo_forget} __rondo_forget)
}

if [[ -r ${ZDOTDIR:-$HOME}/.zshrc ]]; then
    . "${ZDOTDIR:-$HOME}/.zshrc"
fi
__rondo_install
