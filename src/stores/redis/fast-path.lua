-- Decisions by one limit whose states have four words at most, on keys that hold nothing or one
-- state under the same numbers; general-path.lua decides all others. This stands in a script once
-- for each such algorithm that it is for. FORMAT, RULE, WINDOW, TAKE, CHARGE and SETTLE are put in,
-- and what is done with each word: WORDS BY TAGS (fast-word.lua), TAGS OF WORDS
-- (word-tag.lua), and IS STATE, as in codec.lua.
elseif format == --[[FORMAT]] then
  local labelSize, figures = #label, figuresOf(label)
  --[[RULE]]
  local stepUs = stepOf(--[[WINDOW]])
  -- Of the record that was read or written last: its head, with its size before it; how all of it
  -- is packed, how long it is, and its tags.
  local known, form, length, t1, t2, t3, t4 = false, '', -1, 0, 0, 0, 0
  repeat
    local last, cost, ofUs, drainedUs, told, nextTold = #keys, argv[2], -1, -1, nil, 1
    if not isPlain then
      last, cost, at = key + argv[at + 1] - 1, argv[at + 3], at + 4
    end
    if verb == 's' then
      told = cjson.decode(cost)
    else
      cost = cost + 0
    end
    for k = key, last do
      if told then
        cost, ofUs, drainedUs, nextTold = told[nextTold], told[nextTold + 1], told[nextTold + 2], nextTold + 3
      end
      local name = keys[k]
      local raw = heldBy[name]
      if raw == nil then
        raw = values[k]
      end
      if raw == nil then
        raw = try('GET', name)
        if type(raw) == 'table' then
          raw = nil
        end
      end
      -- A state that is not held is cleared by what decides.
      local isUsual, isHeld, idleAtUs, head, s1, s2, s3, s4 = raw == false, false
      if raw then
        if #raw == length then
          idleAtUs, head, s1, s2, s3, s4 = unpackBytes(form, raw)
        end
        if head ~= known then
          known, form, length, t1, t2, t3, t4 = oneRecordForm(raw, label, labelSize)
          if known then
            idleAtUs, known, s1, s2, s3, s4 = unpackBytes(form, raw)
          end
        end
        isUsual = known and idleAtUs < const.NO_NUMBER and t4 <= --[[MOST TAG]]
        if isUsual and idleAtUs > nowUs then
          isHeld = true
          --[[WORDS BY TAGS]]
          isUsual = isUsual and --[[IS STATE]]
        end
      end
      if isUsual then
        local changed, outcome, remaining, retryUs, resetUs, delayUs, enteredUs, given
        if verb == 't' then
          --[[TAKE]]
        elseif verb == 'c' then
          --[[CHARGE]]
        else
          --[[SETTLE]]
        end
        local untilUs, failed = nowUs + resetUs, nil
        if changed then
          local n1, n2, n3, n4 = 0, 0, 0, 0
          --[[TAGS OF WORDS]]
          isUsual = untilUs < const.NO_NUMBER
          if n1 ~= t1 or n2 ~= t2 or n3 ~= t3 or n4 ~= t4 or not known then
            isUsual = n1 and n2 and n3 and n4 and isUsual
            if isUsual then
              local tags = leadTags(n1, n2, n3, n4)
              t1, t2, t3, t4, known = n1, n2, n3, n4, string.char(labelSize + #tags) .. label .. tags
              form, length = packedForm(#known, n1, n2, n3, n4)
            end
          end
          if isUsual then
            local record = pack(form, untilUs, known, s1, s2, s3, s4 or 0)
            local livesUntilUs = untilUs + -untilUs % stepUs
            local done = raw and idleAtUs + -idleAtUs % stepUs == livesUntilUs and try('SET', name, record, 'XX', 'KEEPTTL')
            if not done then
              -- As text: Redis takes longer to write down a number of Lua.
              local ttl = (livesUntilUs - nowUs) / 1000
              ttl = ttl + -ttl % 1
              ttl = ttl > leastTtlMs and ttl or leastTtlMs
              ttl = ttl < const.MOST_AS_TEXT and asText('%d', ttl) or ttl
              -- With GET it refuses to write over a key of another type, which looked like none.
              done = raw and try('SET', name, record, 'PX', ttl) or try('SET', name, record, 'PX', ttl, 'GET')
            end
            heldBy[name] = not isLarge and record or nil
            failed = done and done.err and done
          end
        elseif not raw or try('PTTL', name) == -1 then
          -- Whether there is nothing is not sure. A key that lost its time to live would stay for
          -- ever.
          isUsual = false
        end
        if failed then
          general = general or newSlowPath(newSlowPath, true, nowUs, leastTtlMs, reply, values, heldBy, isLarge, sayInFull, stepOf, figuresOf, leadTags)
          size = general.failed(failed, name, size)
        elseif isUsual then
          if verb == 's' then
            size = size + 1
            reply[size] = outcome == 'allowed' and given or const.LIMITED
          elseif outcome == 'allowed' and delayUs == 0 and enteredUs == nowUs then
            reply[size + 1], reply[size + 2] = remaining, resetUs
            size = size + 2
          else
            size = sayInFull(reply, size, nowUs, outcome, remaining, retryUs, resetUs, delayUs, enteredUs)
          end
        end
      end
      if not isUsual then
        general = general or newSlowPath(newSlowPath, true, nowUs, leastTtlMs, reply, values, heldBy, isLarge, sayInFull, stepOf, figuresOf, leadTags)
        size = general.one(verb, label, k, cost, ofUs, drainedUs, size)
      end
    end
    key, verb = last + 1, argv[at]
  until key > #keys or argv[at + 2] ~= label or #verb > 1
