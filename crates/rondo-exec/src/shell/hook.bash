# Set by the lines above: __rondo_nonce, __rondo_dir. Defined before the user's own start file, so
# that no alias of theirs changes what stands here.
__rondo_seq=0
__rondo_status=0
__rondo_kept=
__rondo_ps1=${PS1-}

# Each mark goes to the terminal itself: the user may have redirected the shell's own output.
__rondo_mark() {
    builtin printf '\e]133;rondo;%s;%s;%s;%s\a' "$__rondo_nonce" "$1" "$__rondo_seq" "$__rondo_status" > /dev/tty
}

# Before each of the user's own prompt commands, which see the exit code. Without a kept one the
# command was interrupted.
__rondo_first() {
    set -- "$?" "$@"
    [[ -n $__rondo_kept ]] || __rondo_status=$1
    __rondo_kept=1
    return "$__rondo_status"
}

__rondo_may_set_prompt() {
    (( BASH_VERSINFO[0] < 5 )) || [[ ${PS1@a} != *r* ]]
}

__rondo_prompt() {
    {
        builtin printf 's:%s:%s:%s\0%s\0' "$__rondo_nonce" "$__rondo_seq" "$__rondo_status" "$PWD"
        builtin jobs -p
        builtin printf '\0'
        builtin export -p
        builtin printf '\0e:%s\0' "$__rondo_nonce"
    } > "$__rondo_dir/state"
    # Again after a second: Ctrl-C makes the terminal drop what was written and not read.
    for __rondo_try in 1 2 3 4 5 6 7 8 9 10; do
        __rondo_mark D
        while IFS= builtin read -t 1 -r -d '' __rondo_line; do
            [[ $__rondo_line == "k:$__rondo_nonce:$__rondo_seq" ]] && break 2
        done
    done < "$__rondo_dir/line"
    __rondo_may_set_prompt || return 0
    [[ ${PS1-} == *"$__rondo_nonce"* ]] || __rondo_ps1=${PS1-}
    PS1=$'\e]133;rondo;'"$__rondo_nonce;B;$__rondo_seq;0"$'\a'
} 2> /dev/null

__rondo_read() {
    # Said again after a second, as the end of a command is. Only a head is waited for so: of a long line
    # what was read by then would be lost.
    while __rondo_mark R; do
        while IFS= builtin read -t 1 -r -d '' __rondo_line; do
            [[ $__rondo_line == "l:$__rondo_nonce" ]] || continue
            # An interrupted read must leave the number as it was.
            IFS= builtin read -r -d '' __rondo_next &&
                IFS= builtin read -r -d '' __rondo_line &&
                __rondo_seq=$__rondo_next || __rondo_line=
            break 2
        done
    done < "$__rondo_dir/line"
    __rondo_may_set_prompt && PS1=$__rondo_ps1
    __rondo_kept=
    __rondo_mark C
    __rondo_remember
    # In the text itself: a failure of `eval` would end the shell under `set -e`, where one in a list
    # would not.
    __rondo_line+=$'\n{ __rondo_keep; } 2> /dev/null'
    return "$__rondo_status"
} 2> /dev/null

# `!!` and its kind, and the line itself in place of the one that called us.
__rondo_remember() {
    [[ -o history ]] || return 0
    (( ${#__rondo_line} < 65536 )) || return 0
    if [[ $- == *H* && $__rondo_line == *'!'* && $__rondo_line != *$'\n'* ]]; then
        __rondo_expanded=$(builtin history -p -- "$__rondo_line") || __rondo_expanded=$__rondo_line
        if [[ $__rondo_expanded != "$__rondo_line" ]]; then
            __rondo_line=$__rondo_expanded
            builtin printf '%s\n' "$__rondo_line" > /dev/tty
        fi
    fi
    builtin history -s -- "$__rondo_line"
}

# After each command, since a command can set `PROMPT_COMMAND`.
__rondo_keep() {
    __rondo_status=$?
    __rondo_kept=1
    __rondo_install
    return 0
}

__rondo_install() {
    local first='{ __rondo_first && :; } 2> /dev/null' last='{ __rondo_prompt || :; } 2> /dev/null'
    local part
    local -a own=()
    if [[ -n ${PROMPT_COMMAND[1]+x} ]] && (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 501 )); then
        for part in "${PROMPT_COMMAND[@]}"; do
            __rondo_strip
            [[ -z $part ]] || own+=("$first"$'\n'"$part")
        done
        PROMPT_COMMAND=("${own[@]}" "$first"$'\n'"$last")
    else
        part=${PROMPT_COMMAND-}
        __rondo_strip
        PROMPT_COMMAND=$first$'\n'${part:+$part$'\n'}$last
    fi
}

# Takes ours out of `part`. Where the user has put theirs around it, something must stay.
__rondo_strip() {
    part=${part#"$first"$'\n'}
    part=${part%"$last"}
    part=${part%$'\n'}
    part=${part//"$first"/:}
    part=${part//"$last"/:}
}

if [[ -r ~/.bashrc ]]; then
    . ~/.bashrc
fi
__rondo_install
